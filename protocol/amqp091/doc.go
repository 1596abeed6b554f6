// Package amqp091 is the wire format of AMQP 0-9-1 with RabbitMQ's extensions: bytes to typed values and back. It keeps no
// connection's state and opens no socket; which method is allowed when is the front end's business.
//
// # Reading
//
// A Reader takes frames from a connection. Method payloads are decoded into the method structs, which are generated from
// methods.txt; header and body frames are put together to a message by a Content, the bodies being read straight into the
// message. Nothing is allocated because a peer announced a size: memory follows the bytes that have arrived. What a peer did
// wrong is an *Error, which says how to close the channel or the connection.
//
// # Writing
//
// Everything that is written is appended to a slice of the caller's: each method has AppendFrame, and a message's header and body
// frames come from AppendContent.
//
// # Properties and tables
//
// A message's properties are kept as they came: PropertyBytes, the flags word and then the values. An argument table is kept as
// it came as well: Table, its fields without the length in front. Both are checked when they are received, which costs one walk
// and no memory, and read in place when something needs them: order, repeated names (the first counts) and types survive.
// These bytes are also what a command stores and what Warren's own protocol carries, so one stored message reads the same over
// both. Properties and Map are the decoded forms, for those who want Go values.
package amqp091

//go:generate go run ./generate

// Package script holds scripts with expected output, testdata/*.txt: what Warren does, seen through its front doors. A
// script is read as documentation, and a change of it is a change of behaviour.
//
// Each script has a node of its own, new and empty. A line that begins with "> " is a step, and what follows up to the next
// step, empty line or comment is what it prints:
//
//	# A message that nobody acknowledged is delivered again.
//	> amqp publish "" q hello
//	confirmed
//	> warren get q
//	hello
//
// Steps are
//
//	warren …    a command of the tools, over Warren's own protocol; lines that begin with "< " below it are its standard input
//	amqp …      over AMQP 0-9-1, on one channel in confirm mode that stays open: see amqp_test.go
//	http METHOD PATH [BODY]   over HTTP, with the status and the answer as JSON
//
// "> until …" repeats a step until it prints what is expected. Words are separated by blanks; ' and " hold them together.
// A line on standard error begins with "! " in the output. <any> in the expected output stands for any text within a line.
//
// With -update a script is written anew with what the steps print; lines with <any> that fit stay as they are.
package script

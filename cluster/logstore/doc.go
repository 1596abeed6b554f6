// Package logstore is Warren's Raft log on disk: append-only segments, one write and one sync for each StoreLogs.
//
// # On disk
//
// A directory holds segments (seg-<generation>), a few emptied ones kept for reuse (free-<generation>) and one file
// called mark. A segment is a header followed by groups; a group is what one StoreLogs wrote: a group header and
// its records. Generations are never used twice.
//
// A record's checksum is seeded with its predecessor's and with the segment's seed, a checksum over generation and
// a random salt. A group header's checksum is seeded with the segment's seed and covers its own offset. So bytes
// that an earlier user of the file left behind never pass for entries, nor do bytes that a client chose.
//
// A segment's header names the segment before it, where that one ends and its last checksum. A suffix is
// truncated by starting a new segment whose header names an earlier end.
//
// # What says that something is missing
//
// Each group header says how far the log was synced when it was written, so a group that can be read proves that
// everything before it had been acknowledged: a bad record in front of it is damage. The mark says the same from
// outside: the log is complete up to entry N, in segment G up to byte B, and begins with segment F. It is synced
// when a segment begins (before the first entry goes into it), when a range is deleted, on Close, and by a
// goroutine of the store at most once in MarkDelay, which appends do not wait for. That last one is also the
// marker that follows when the log goes idle. An append therefore costs no extra sync, and a segment that is cut
// short or missing shows, except for what the last MarkDelay under load acknowledged in the newest segment.
//
// At start everything behind the mark, and the mark, is written anew and synced: after a sync that failed, reads may
// show bytes that the disk does not have, and later syncs would not write them.
//
// Only a bad group behind both, with no readable group after it, is cut as the tail of an unfinished write.
// Anything else is a *DamageError.
package logstore

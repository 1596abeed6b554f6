package fsm

import "github.com/cespare/xxhash/v2"

const (
	// maxUploads bounds the unfinished uploads of all sessions.
	maxUploads = 65_536
	// A part below smallPart bytes is copied together with its neighbours rather than pinning its log entry.
	smallPart = 64 << 10
)

// upload is a body above MaxInlineBody on its way (rule 7).
type upload struct {
	session  Session
	number   uint64
	total    uint64
	received uint64
	parts    [][]byte // together received bytes; where they are cut means nothing

	open   bool // the last part is a copy and may grow
	digest xxhash.Digest
	hash   uint64 // its part of state.sum
}

// add takes in the next bytes.
func (u *upload) add(b []byte) {
	_, _ = u.digest.Write(b) // never fails
	u.received += uint64(len(b))
	if len(b) >= smallPart {
		u.parts, u.open = append(u.parts, b), false
		return
	}
	if last := len(u.parts) - 1; u.open && len(u.parts[last])+len(b) <= smallPart {
		u.parts[last] = append(u.parts[last], b...)
		return
	}
	u.parts, u.open = append(u.parts, append([]byte(nil), b...)), true
}

// body returns all parts as one.
func (u *upload) body() []byte {
	b := make([]byte, 0, u.received)
	for _, p := range u.parts {
		b = append(b, p...)
	}
	return b
}

func (u *upload) sum() uint64 {
	h := mix(mix(mix(seedUpload, u.session.Term), u.session.Number), u.number)
	return mix(mix(mix(h, u.total), u.received), u.digest.Sum64())
}

// insertUpload adds an upload with bytes that were received before.
func (s *state) insertUpload(session Session, number, total uint64, parts ...[]byte) *upload {
	u := &upload{session: session, number: number, total: total}
	u.digest.Reset()
	for _, p := range parts {
		u.add(p)
	}
	s.session(session).uploads[number] = u
	s.uploads++
	s.uploadBytes += u.received
	u.hash = u.sum()
	s.sum += u.hash
	return u
}

// upload finds an upload, or returns nil.
func (s *state) upload(session Session, number uint64) *upload {
	if c := s.sessions[session]; c != nil {
		return c.uploads[number]
	}
	return nil
}

// dropUpload forgets an upload, if there is one.
func (s *state) dropUpload(session Session, number uint64) {
	u := s.upload(session, number)
	if u == nil {
		return
	}
	delete(s.sessions[session].uploads, number)
	s.uploads--
	s.uploadBytes -= u.received
	s.sum -= u.hash
	s.forget(session)
}

// applyBodyPart takes in a part. A part that does not continue its upload drops the upload.
func (s *state) applyBodyPart(c *BodyPart) Result {
	u := s.upload(c.Session, c.Upload)
	var received uint64
	if u != nil {
		received = u.received
	}
	refused := Result{}
	switch {
	case c.Upload == 0 || len(c.Bytes) == 0:
		refused = refuse(PreconditionFailed, "a body part needs an upload number and at least one byte")
	case c.Total > MaxBody:
		refused = refuse(ContentTooLarge, "a body of %d bytes is larger than the maximum of %d", c.Total, MaxBody)
	case c.Offset != received || u != nil && c.Total != u.total:
		refused = refuse(PreconditionFailed, "body part at %d of %d does not continue upload %d, which has %d bytes", c.Offset, c.Total, c.Upload, received)
	case uint64(len(c.Bytes)) > c.Total-received:
		refused = refuse(PreconditionFailed, "body part at %d has %d bytes, more than the %d announced", c.Offset, len(c.Bytes), c.Total)
	case s.uploadBytes+uint64(len(c.Bytes)) > MaxUploadBytes:
		refused = refuse(PreconditionFailed, "unfinished uploads would hold more than %d bytes: wait until others are published", MaxUploadBytes)
	case u == nil && s.uploads >= maxUploads:
		refused = refuse(PreconditionFailed, "there are %d unfinished uploads, the most there may be: wait until others are published", maxUploads)
	}
	if refused.Code != OK {
		s.dropUpload(c.Session, c.Upload)
		return refused
	}
	if u == nil {
		s.insertUpload(c.Session, c.Upload, c.Total, c.Bytes)
		return Result{}
	}
	s.uploadBytes += uint64(len(c.Bytes))
	u.add(c.Bytes)
	s.sum -= u.hash
	u.hash = u.sum()
	s.sum += u.hash
	return Result{}
}

func (s *state) applyDropUpload(c *DropUpload) Result {
	s.dropUpload(c.Session, c.Upload)
	return Result{}
}

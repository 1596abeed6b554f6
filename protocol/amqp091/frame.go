package amqp091

// The frame types.
const (
	FrameMethod    uint8 = 1
	FrameHeader    uint8 = 2
	FrameBody      uint8 = 3
	FrameHeartbeat uint8 = 8

	frameEnd = 0xCE
)

// Sizes and bounds, in bytes.
const (
	FrameOverhead = 8                 // of every frame: 7 in front of the payload and the end byte
	MinFrameMax   = 4096              // the smallest frame_max that can be negotiated
	MaxBodyBytes  = 512 << 20         // of a message; more is a frame error
	headerBytes   = 7                 // in front of a payload
	contentBytes  = 2 + 2 + 8         // of a header frame's payload, in front of the properties
	noLimit       = MaxBodyBytes + 12 // what a frame_max of 0 stands for
)

// ProtocolHeader is what a client sends first, and a server to a client whose header it does not speak.
var ProtocolHeader = [8]byte{'A', 'M', 'Q', 'P', 0, 0, 9, 1}

// AppendHeartbeat appends a heartbeat frame.
func AppendHeartbeat(dst []byte) []byte {
	return append(dst, FrameHeartbeat, 0, 0, 0, 0, 0, 0, frameEnd)
}

// AppendHeader appends the header frame of a message of class basic; the body's frames have to follow.
func AppendHeader(dst []byte, channel uint16, bodySize uint64, properties PropertyBytes) []byte {
	from := len(dst)
	dst = beginFrame(dst, FrameHeader, channel)
	dst = append(dst, 0, ClassBasic, 0, 0)
	dst = be.AppendUint64(dst, bodySize)
	if len(properties) == 0 {
		dst = append(dst, 0, 0)
	}
	return endFrame(append(dst, properties...), from)
}

// AppendContent appends what follows a method with content: the header frame and the body in frames of at most frameMax bytes
// (0: no limit), none for an empty body.
func AppendContent(dst []byte, channel uint16, properties PropertyBytes, body []byte, frameMax uint32) []byte {
	dst = AppendHeader(dst, channel, uint64(len(body)), properties)
	most := bodyMax(frameMax)
	for len(body) > 0 {
		n := min(len(body), most)
		from := len(dst)
		dst = endFrame(append(beginFrame(dst, FrameBody, channel), body[:n]...), from)
		body = body[n:]
	}
	return dst
}

// ClassBasic is the only class whose methods have content.
const ClassBasic = 60

// bodyMax is how much of a body one frame carries.
func bodyMax(frameMax uint32) int {
	if frameMax == 0 {
		return MaxBodyBytes
	}
	return int(max(frameMax, MinFrameMax)) - FrameOverhead
}

func beginFrame(dst []byte, kind uint8, channel uint16) []byte {
	return append(dst, kind, byte(channel>>8), byte(channel), 0, 0, 0, 0)
}

// endFrame completes the frame that begins at from.
func endFrame(dst []byte, from int) []byte {
	be.PutUint32(dst[from+3:], uint32(len(dst)-from-headerBytes))
	return append(dst, frameEnd)
}

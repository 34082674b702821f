package perfetto

import (
	"encoding/binary"
	"time"
)

// Fields of the messages, by protos/perfetto/trace/{trace,trace_packet}.proto and, below track_event/,
// {track_event,track_descriptor,process_descriptor,counter_descriptor,debug_annotation}.proto of github.com/google/perfetto. Numbers of
// fields never change. Varints and bytes with a length are all that is needed, and fixed64 for flows.
const (
	tracePacket = 1 // Trace.packet

	packetTimestamp  = 8  // TracePacket.timestamp, ns
	packetSequence   = 10 // .trusted_packet_sequence_id
	packetEvent      = 11 // .track_event
	packetMark       = 36 // .synchronization_marker
	packetDescriptor = 60 // .track_descriptor

	eventNote     = 4  // TrackEvent.debug_annotations
	eventType     = 9  // .type
	eventTrack    = 11 // .track_uuid
	eventCategory = 22 // .categories
	eventName     = 23 // .name
	eventCounter  = 30 // .counter_value
	eventFlow     = 47 // .flow_ids
	eventFlowEnd  = 48 // .terminating_flow_ids

	noteUint = 3  // DebugAnnotation.uint_value
	noteText = 6  // .string_value
	noteName = 10 // .name

	trackUUID    = 1 // TrackDescriptor.uuid
	trackName    = 2 // .name
	trackProcess = 3 // .process
	trackParent  = 5 // .parent_uuid
	trackCounter = 8 // .counter

	counterUnit = 3 // CounterDescriptor.unit: 2 is a number, 3 bytes

	processPID  = 1 // ProcessDescriptor.pid
	processName = 6 // .process_name
)

// Values of TrackEvent.Type.
const (
	begin   = 1 // TYPE_SLICE_BEGIN
	finish  = 2 // TYPE_SLICE_END
	instant = 3 // TYPE_INSTANT
	counter = 4 // TYPE_COUNTER
)

// Wire types, as protobuf.dev/programming-guides/encoding numbers them.
const (
	wireVarint = 0
	wireI64    = 1
	wireLen    = 2
)

// encoder appends packets to b.
type encoder struct {
	b                   []byte
	packet, inner, note []byte // of what is written
}

func varint(b []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|wireVarint), v)
}

func text[T string | []byte](b []byte, field int, s T) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|wireLen), uint64(len(s)))
	return append(b, s...)
}

func fixed(b []byte, field int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(field)<<3|wireI64), v)
}

// marked is a packet behind which another one begins: that by which readers divide traces without reading all of them
// (TracePacket.synchronization_marker, whose value is given there).
var marked = text(nil, tracePacket, text(nil, packetMark, "\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79"))

func (e *encoder) mark() { e.b = append(e.b, marked...) }

// packetHead is what each packet of a trace begins with, before its length.
const packetHead = tracePacket<<3 | wireLen

// whole is how many bytes of b are whole packets.
func whole(b []byte) (n int) {
	for len(b) > n && b[n] == packetHead {
		l, k := binary.Uvarint(b[n+1:])
		if k <= 0 || l > uint64(len(b)-n-1-k) {
			break
		}
		n += 1 + k + int(l)
	}
	return n
}

// move writes whole packets of another clock, in which the time comes first.
func (e *encoder) move(b []byte, here func(theirs time.Duration) time.Duration) {
	for len(b) > 0 {
		l, k := binary.Uvarint(b[1:])
		p := b[1+k:][:l]
		b = b[1+k+int(l):]
		if l > 0 && p[0] == packetTimestamp<<3|wireVarint {
			if at, n := binary.Uvarint(p[1:]); n > 0 {
				e.packet = varint(e.packet[:0], packetTimestamp, uint64(max(here(time.Duration(at)), 0)))
				e.packet = append(e.packet, p[1+n:]...)
				p = e.packet
			}
		}
		e.b = text(e.b, tracePacket, p)
	}
}

// process writes the track of a rank. Process 0 is the kernel's, so that rank 0 is process 1.
func (e *encoder) process(id uint64, rank int, name string) {
	e.note = text(varint(e.note[:0], processPID, uint64(rank)+1), processName, name)
	e.inner = text(varint(e.inner[:0], trackUUID, id), trackProcess, e.note)
	e.packet = text(e.packet[:0], packetDescriptor, e.inner)
	e.b = text(e.b, tracePacket, e.packet)
}

// row writes the track of a row. Those of one name and parent are drawn as one, with several lines.
func (e *encoder) row(id, parent uint64, name string) {
	e.inner = varint(text(varint(e.inner[:0], trackUUID, id), trackName, name), trackParent, parent)
	e.packet = text(e.packet[:0], packetDescriptor, e.inner)
	e.b = text(e.b, tracePacket, e.packet)
}

// counter writes the track of a counter.
func (e *encoder) counter(id, parent uint64, name string, unit uint64) {
	e.note = varint(e.note[:0], counterUnit, unit)
	e.inner = varint(text(varint(e.inner[:0], trackUUID, id), trackName, name), trackParent, parent)
	e.packet = text(e.packet[:0], packetDescriptor, text(e.inner, trackCounter, e.note))
	e.b = text(e.b, tracePacket, e.packet)
}

// value writes the value that a counter has from at on.
func (e *encoder) value(track uint64, rank int, v uint64, at time.Duration) {
	e.inner = varint(varint(varint(e.inner[:0], eventType, counter), eventTrack, track), eventCounter, v)
	e.put(rank, at)
}

// put writes the event in e.inner.
func (e *encoder) put(rank int, at time.Duration) {
	e.packet = varint(varint(e.packet[:0], packetTimestamp, uint64(max(at, 0))), packetSequence, uint64(rank)+1)
	e.packet = text(e.packet, packetEvent, e.inner)
	e.b = text(e.b, tracePacket, e.packet)
}

// event writes an event of a track; s is nil at the end of a slice.
func (e *encoder) event(what int, category string, track uint64, rank int, s *Slice, at time.Duration) {
	p := varint(varint(e.inner[:0], eventType, uint64(what)), eventTrack, track)
	if s != nil {
		p = text(text(p, eventCategory, category), eventName, s.Name)
		if s.Line != "" {
			e.note = text(text(e.note[:0], noteName, "line"), noteText, s.Line)
			p = text(p, eventNote, e.note)
		}
		switch {
		case s.Peer >= 0:
			p = e.number(p, "rank", uint64(s.Peer))
		case s.Peer == Others:
			e.note = text(text(e.note[:0], noteName, "rank"), noteText, "all others")
			p = text(p, eventNote, e.note)
		}
		if s.Bytes > 0 {
			p = e.number(p, "bytes", s.Bytes)
		}
		for _, id := range s.From {
			p = fixed(p, eventFlow, id)
		}
		if s.To != 0 {
			p = fixed(p, eventFlowEnd, s.To)
		}
	}
	e.inner = p
	e.put(rank, at)
}

// number appends a debug annotation to an event.
func (e *encoder) number(p []byte, name string, v uint64) []byte {
	e.note = varint(text(e.note[:0], noteName, name), noteUint, v)
	return text(p, eventNote, e.note)
}

// Package framingtest writes response bodies in framings, for tests.
package framingtest

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// AWSMessage returns one message of the event stream, with headers given as names and
// values in turn.
func AWSMessage(payload string, headers ...string) []byte {
	var head []byte
	for i := 0; i < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = binary.BigEndian.AppendUint16(append(head, 7), uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	m := binary.BigEndian.AppendUint32(nil, uint32(12+len(head)+len(payload)+4))
	m = binary.BigEndian.AppendUint32(m, uint32(len(head)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(append(m, head...), payload...)
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

// AWSEvent returns a message that holds an event of a type.
func AWSEvent(kind, payload string) []byte {
	return AWSMessage(payload, ":event-type", kind, ":content-type", "application/json", ":message-type", "event")
}

// AWSChunk returns a message as InvokeModel sends it: the event of the model is inside
// it, in base64.
func AWSChunk(data string) []byte {
	return AWSEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(data))+`","p":"abc"}`)
}

package fsm

import (
	"reflect"
	"testing"
)

func TestCommandsSurviveTheirEncoding(t *testing.T) {
	s, runs := Session{3, 300}, []Run{{1, 4}, {7, 7}, {70_000, 1 << 40}}
	boots := []MemberBoot{{"n1", [16]byte{1}}, {"n2", [16]byte{2}}}
	for _, c := range []Command{
		&PutVhost{"v"}, &DeleteVhost{"v"}, &PutExchange{1, "e", "topic", true, false, true, []byte{1}},
		&DeleteExchange{1, "e", true}, &PutQueue{1, "q", true, false, true, []byte{2}, s},
		&DeleteQueue{1, "q", 9, true, runs, s}, &PutBinding{1, "e", ToExchange, "f", "k", []byte{3}, s},
		&DeleteBinding{1, "e", ToQueue, "q", "k", []byte{3}, s}, &Purge{9, runs},
		&Publish{Vhost: 1, Exchange: "e", RoutingKey: "k", Properties: []byte{0, 0}, Body: []byte("b")},
		&Publish{1, "e", "k", []byte{0, 0}, []byte{}, 5, s, []byte("p"), 1 << 33}, &Settle{9, Return, runs},
		&Transaction{[]Command{&Settle{9, Reject, runs}}}, &ClientGone{s}, &LeaderStarted{"n1", true, boots},
		&MemberBoots{boots}, &DropExclusive{7}, &DropTransient{8}, &ConsumerPresence{9, true}, &DeleteUnused{9, 1 << 41},
		&BodyPart{s, 5, 10, 20, []byte("part")}, &DropUpload{s, 5}, &Mark{9, 4096}, &Audit{77, 1, 1 << 63}, &FoundCluster{"id"},
	} {
		b := c.appendTo(nil)
		d := decoder{b: b}
		got, err := d.command(c.opcode())
		if err != nil || len(d.b) != 0 || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v came back as %+v, %v, %d bytes left", c, got, err, len(d.b))
		}
		if Size(c) < len(b)+1 {
			t.Errorf("Size(%T) is %d, it takes %d", c, Size(c), len(b)+1)
		}
	}
}

func TestRule5Window(t *testing.T) {
	l := &entryLog{t: t, machines: []*Machine{New(Options{})}}
	publish := func(sequence uint64) Result {
		return l.apply(&Publish{Vhost: 1, RoutingKey: "none", Producer: []byte("p"), Sequence: sequence})[0]
	}
	for _, c := range []struct {
		sequence  uint64
		duplicate bool
		code      Code
	}{{5, false, OK}, {3, false, OK}, {4, false, OK}, {3, true, OK}, {70_000, false, OK}, {4463, false, SequenceTooOld},
		{4464, false, OK}, {4464, true, OK}, {70_000, true, OK}} {
		if r := publish(c.sequence); r.Duplicate != c.duplicate || r.Code != c.code {
			t.Errorf("sequence %d gave %+v", c.sequence, r)
		}
	}
}

package broker

import (
	"net"
	"testing"

	"github.com/warrenmq/warren/fsm"
)

type namedAddr string

func (a namedAddr) Network() string { return "tcp" }
func (a namedAddr) String() string  { return string(a) }

func TestRow14GuestComesFromThisHostOnly(t *testing.T) {
	here, mapped, far := namedAddr("127.0.0.1:4711"), namedAddr("[::ffff:127.0.0.1]:4711"), namedAddr("10.0.0.1:4711")
	for _, c := range []struct {
		name           string
		config         Config
		user, password string
		peer           net.Addr
		good           bool
	}{
		{"default", Config{}, "guest", "guest", here, true},
		{"IPv6", Config{}, "guest", "guest", namedAddr("[::1]:4711"), true},
		{"IPv4 in IPv6", Config{}, "guest", "guest", mapped, true},
		{"from afar", Config{}, "guest", "guest", far, false},
		{"from nowhere", Config{}, "guest", "guest", nil, false},
		{"a host's name", Config{}, "guest", "guest", namedAddr("localhost:1"), false},
		{"wrong password", Config{}, "guest", "guess", here, false},
		{"wrong user", Config{}, "ghost", "guest", here, false},
		{"nothing", Config{}, "", "", here, false},
		{"anybody from anywhere", Config{LoopbackUsers: []string{}}, "guest", "guest", far, true},
		{"own user", Config{DefaultUser: "warren", DefaultPassword: "secret"}, "warren", "secret", far, true},
		{"guest is not there", Config{DefaultUser: "warren", DefaultPassword: "secret"}, "guest", "guest", here, false},
		{"own user at home", Config{DefaultUser: "warren", DefaultPassword: "secret", LoopbackUsers: []string{"warren"}}, "warren", "secret", far, false},
	} {
		err := New(c.config).Login(c.user, c.password, c.peer)
		if (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && (AsError(err).Code != fsm.AccessRefused || err.Error() != "ACCESS_REFUSED - Login was refused") {
			t.Errorf("%s: the client learns %v", c.name, err)
		}
	}
}

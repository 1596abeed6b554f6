package broker

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/netip"
	"slices"

	"github.com/warrenmq/warren/fsm"
)

// Login checks a user's name and password and from where it comes; peer may be the address that a relay passed on. A
// refusal says nothing of the reason to the client and everything to the log. It does not block.
func (b *Broker) Login(user, password string, peer net.Addr) error {
	name, secret := same(user, b.config.DefaultUser), same(password, b.config.DefaultPassword)
	reason := ""
	switch {
	case name&secret == 0:
		reason = "the user's name or password is wrong"
	case slices.Contains(b.config.LoopbackUsers, user) && !loopback(peer):
		reason = "this user may come from this host only; see --loopback-users"
	default:
		return nil
	}
	b.log.Warn("a login was refused", "user", clip(user), "peer", address(peer), "reason", reason)
	return errorf(fsm.AccessRefused, "ACCESS_REFUSED - Login was refused")
}

// same is 1 when the texts are equal, else 0; how long it takes says nothing about the second one.
func same(given, want string) int {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:])
}

// loopback reports whether an address is this host's own.
func loopback(peer net.Addr) bool {
	at, err := netip.ParseAddrPort(address(peer))
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func address(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}

// clip keeps a client's text short in the log.
func clip(s string) string { return s[:min(len(s), 64)] }

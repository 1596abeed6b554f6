package management

import (
	"fmt"
	"net/http"
)

// There is one user, the one of the configuration: whoever asks. It may do everything.

const everything = ".*"

var errNoUsers = &failure{http.StatusNotImplemented, refusal{"not_implemented",
	"this version has one user, set with --default-user and --default-password; other users and permissions come later"}}

func (c *call) whoami() error {
	return c.ok(object{"name": c.user, "tags": []string{"administrator"}})
}

func (c *call) userObject() object {
	return object{"name": c.user, "tags": []string{"administrator"}, "limits": object{}}
}

func (c *call) users() error { return c.list([]object{c.userObject()}) }

func (c *call) userNamed() error {
	if c.args[0] != c.user {
		return errNotFound
	}
	return c.one(c.userObject())
}

func (c *call) putUser() error { return errNoUsers }

func (c *call) permissionOn(vhost string) object {
	return object{"user": c.user, "vhost": vhost, "configure": everything, "write": everything, "read": everything}
}

func (c *call) permissions() error {
	items := []object{}
	for _, v := range c.in.Vhosts() {
		items = append(items, c.permissionOn(v.Name))
	}
	return c.list(items)
}

func (c *call) userPermissions() error {
	if c.args[0] != c.user {
		return errNotFound
	}
	return c.permissions()
}

func (c *call) vhostPermissions() error {
	if _, err := c.vhostOf(c.args[0]); err != nil {
		return err
	}
	return c.list([]object{c.permissionOn(c.args[0])})
}

func (c *call) permission() error {
	if _, err := c.vhostOf(c.args[0]); err != nil || c.args[1] != c.user {
		return errNotFound
	}
	return c.one(c.permissionOn(c.args[0]))
}

// putPermission accepts what is so already: tests and tools say it for safety.
func (c *call) putPermission() error {
	if _, err := c.vhostOf(c.args[0]); err != nil || c.args[1] != c.user {
		return &failure{http.StatusBadRequest, refusal{"bad_request", "vhost_or_user_not_found"}}
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	for _, name := range []string{"configure", "write", "read"} {
		if b[name] == nil {
			return badRequest("key missing: %s", name)
		}
		if fmt.Sprint(b[name]) != everything {
			return errNoUsers
		}
	}
	return c.done(http.StatusNoContent)
}

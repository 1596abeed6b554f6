package management_test

import "testing"

func TestLimitsOfVhostsAndUsers(t *testing.T) {
	n := start(t)
	const v, u = "/api/vhost-limits/%2f", "/api/user-limits/ada"
	n.steps([]step{
		{"GET", "/api/vhost-limits", "", 200, "[]"},
		{"PUT", v + "/max-queues", `{"value":2}`, 204, ""},
		{"PUT", v + "/max-connections", `{"value":9}`, 204, ""},
		{"GET", v, "", 200, `[{"value":{"max-connections":9,"max-queues":2},"vhost":"/"}]`},
		{"PUT", v + "/max-queues", `{}`, 400, "key_missing: value"},
		{"PUT", v + "/max-queues", `{"value":"many"}`, 400, "value is an integer"},
		{"PUT", v + "/max-messages", `{"value":2}`, 400, "there is no limit 'max-messages'"},
		{"PUT", "/api/vhost-limits/none/max-queues", `{"value":2}`, 404, ""},
		{"PUT", "/api/queues/%2f/a", `{"durable":true}`, 201, ""},
		{"PUT", "/api/queues/%2f/b", `{"durable":true}`, 201, ""},
		{"PUT", "/api/queues/%2f/c", `{"durable":true}`, 400, "cannot declare queue 'c': queue limit in vhost '/' (2) is reached"},
		{"DELETE", v + "/max-queues", "", 204, ""},
		{"PUT", "/api/queues/%2f/c", `{"durable":true}`, 201, ""},
		{"GET", "/api/vhost-limits", "", 200, `[{"value":{"max-connections":9},"vhost":"/"}]`},
		{"PUT", u + "/max-channels", `{"value":7}`, 204, ""},
		{"PUT", u + "/max-queues", `{"value":7}`, 400, "there is no limit 'max-queues'"},
		{"GET", u, "", 200, `[{"user":"ada","value":{"max-channels":7}}]`},
		{"GET", "/api/user-limits", "", 200, `"user":"ada"`},
		{"DELETE", u + "/max-channels", "", 204, ""},
		{"GET", "/api/user-limits", "", 200, "[]"},
	})
}

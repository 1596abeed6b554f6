package management_test

import "testing"

func TestPolicies(t *testing.T) {
	n := start(t)
	const p, o = "/api/policies/%2f/ttl", "/api/operator-policies/%2f/cap"
	n.steps([]step{
		{"GET", "/api/policies", "", 200, "[]"},
		{"GET", p, "", 404, ""},
		{"DELETE", p, "", 404, ""},
		{"PUT", p, `{"definition":{"message-ttl":1000}}`, 400, "key_missing: pattern"},
		{"PUT", p, `{"pattern":"^a"}`, 400, "key_missing: definition"},
		{"PUT", p, `{"pattern":"^a","definition":{}}`, 400, "empty"},
		{"PUT", p, `{"pattern":"^a","definition":5}`, 400, "definition is an object"},
		{"PUT", p, `{"pattern":"(","definition":{"message-ttl":1}}`, 400, "'(' is not a valid regular expression"},
		{"PUT", p, `{"pattern":"((a{99}){99}){99}","definition":{"message-ttl":1}}`, 400, "not a valid regular expression"},
		{"PUT", p, `{"pattern":"(abcdefgh){300}","definition":{"message-ttl":1}}`, 400, "it repeats too much"},
		{"PUT", p, `{"pattern":"^a","definition":{"max-priority":1}}`, 400, "'max-priority' is not a recognised policy setting"},
		{"PUT", p, `{"pattern":"^a","definition":{"message-ttl":"x"}}`, 400, "'x' is not a valid message TTL"},
		{"PUT", p, `{"pattern":"^a","definition":{"message-ttl":1},"apply-to":"some"}`, 400, "apply-to 'some'"},
		{"PUT", p, `{"pattern":"^a","definition":{"message-ttl":1},"priority":"x"}`, 400, "priority is an integer"},
		{"PUT", o, `{"pattern":"^a","definition":{"dead-letter-exchange":"x"}}`, 400, "operator policy setting"},
		{"PUT", "/api/policies/none/ttl", `{"pattern":"^a","definition":{"message-ttl":1}}`, 404, ""},
		{"PUT", "/api/queues/%2f/a", `{"durable":true}`, 201, ""},
		{"GET", "/api/queues/%2f/a", "", 200, `"policy":null`},
		{"PUT", p, `{"pattern":"^a","definition":{"message-ttl":1000,"overflow":"drop-head"},"priority":"3","apply-to":"queues"}`, 201, ""},
		{"PUT", p, `{"pattern":"^a","definition":{"message-ttl":5000,"overflow":"drop-head"},"priority":3}`, 204, ""},
		{"PUT", o, `{"pattern":"","definition":{"message-ttl":4000,"expires":60000},"apply-to":"all"}`, 201, ""},
		{"GET", p, "", 200, `{"apply-to":"all","definition":{"message-ttl":5000,"overflow":"drop-head"},"name":"ttl","pattern":"^a","priority":3,"vhost":"/"}`},
		{"GET", "/api/policies/%2f", "", 200, `"name":"ttl"`},
		{"GET", "/api/operator-policies", "", 200, `"name":"cap"`},
		{"GET", "/api/queues/%2f/a", "", 200, `"effective_policy_definition":{"expires":60000,"message-ttl":4000,"overflow":"drop-head"}`},
		{"GET", "/api/queues/%2f/a", "", 200, `"operator_policy":"cap"`},
		{"GET", "/api/exchanges/%2f/amq.topic", "", 200, `"policy":"ttl"`},
		{"DELETE", p, "", 204, ""},
		{"GET", "/api/exchanges/%2f/amq.topic", "", 200, `"policy":null`},
		{"GET", "/api/queues/%2f/a", "", 200, `"effective_policy_definition":{"expires":60000,"message-ttl":4000}`},
	})
}

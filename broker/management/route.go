package management

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// endpoint is what is at a path. In a pattern {} stands for any one segment.
type endpoint struct {
	pattern string
	health  bool // about this node only, answered within healthLimit, without a leader too
	methods methods
}

func (e *endpoint) allow() string {
	list := slices.Collect(maps.Keys(e.methods))
	if e.methods[http.MethodGet] != nil {
		list = append(list, http.MethodHead)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

type methods map[string]func(*call) error

func get(f func(*call) error) methods { return methods{http.MethodGet: f} }

// and adds a method.
func (m methods) and(method string, f func(*call) error) methods {
	m[method] = f
	return m
}

// endpoints is all there is.
func endpoints() []endpoint {
	const del, put, post = http.MethodDelete, http.MethodPut, http.MethodPost
	return slices.Concat(policyEndpoints("policies", false), policyEndpoints("operator-policies", true), limitEndpoints(), []endpoint{
		{pattern: "overview", methods: get((*call).overview)},
		{pattern: "whoami", methods: get((*call).whoami)},
		{pattern: "nodes", methods: get((*call).nodes)},
		{pattern: "nodes/{}", methods: get((*call).node)},
		{pattern: "cluster-name", methods: get((*call).clusterName)},
		{pattern: "aliveness-test/{}", methods: get((*call).aliveness)},
		{pattern: "health/checks/alarms", health: true, methods: get((*call).alarms)},
		{pattern: "health/checks/local-alarms", health: true, methods: get((*call).localAlarms)},
		{pattern: "health/checks/virtual-hosts", health: true, methods: get((*call).healthy)},
		{pattern: "health/checks/node-is-quorum-critical", health: true, methods: get((*call).quorumCritical)},

		{pattern: "connections", methods: get((*call).connections)},
		{pattern: "connections/{}", methods: get((*call).connection).and(del, (*call).closeConnection)},
		{pattern: "connections/{}/channels", methods: get((*call).connectionChannels)},
		{pattern: "connections/username/{}", methods: get((*call).userConnections).and(del, (*call).closeUserConnections)},
		{pattern: "vhosts/{}/connections", methods: get((*call).vhostConnections)},
		{pattern: "channels", methods: get((*call).channels)},
		{pattern: "channels/{}", methods: get((*call).channel)},
		{pattern: "vhosts/{}/channels", methods: get((*call).vhostChannels)},
		{pattern: "consumers", methods: get((*call).consumers)},
		{pattern: "consumers/{}", methods: get((*call).vhostConsumers)},

		{pattern: "queues", methods: get((*call).queues)},
		{pattern: "queues/{}", methods: get((*call).vhostQueues)},
		{pattern: "queues/{}/{}", methods: get((*call).queue).and(put, (*call).putQueue).and(del, (*call).deleteQueue)},
		{pattern: "queues/{}/{}/contents", methods: methods{del: (*call).purge}},
		{pattern: "queues/{}/{}/get", methods: methods{post: (*call).getMessages}},
		{pattern: "queues/{}/{}/messages", methods: get((*call).peekMessages)},
		{pattern: "queues/{}/{}/move", methods: methods{post: (*call).moveMessages}},
		{pattern: "queues/{}/{}/bindings", methods: get((*call).queueBindings)},

		{pattern: "exchanges", methods: get((*call).exchanges)},
		{pattern: "exchanges/{}", methods: get((*call).vhostExchanges)},
		{pattern: "exchanges/{}/{}", methods: get((*call).exchange).and(put, (*call).putExchange).and(del, (*call).deleteExchange)},
		{pattern: "exchanges/{}/{}/bindings/source", methods: get((*call).bindingsFrom)},
		{pattern: "exchanges/{}/{}/bindings/destination", methods: get((*call).bindingsTo)},

		{pattern: "bindings", methods: get((*call).bindings)},
		{pattern: "bindings/{}", methods: get((*call).vhostBindings)},
		{pattern: "bindings/{}/e/{}/q/{}", methods: get((*call).bindingsBetween).and(post, (*call).bind)},
		{pattern: "bindings/{}/e/{}/e/{}", methods: get((*call).bindingsBetween).and(post, (*call).bind)},
		{pattern: "bindings/{}/e/{}/q/{}/{}", methods: get((*call).binding).and(del, (*call).unbind)},
		{pattern: "bindings/{}/e/{}/e/{}/{}", methods: get((*call).binding).and(del, (*call).unbind)},

		{pattern: "vhosts", methods: get((*call).vhosts)},
		{pattern: "vhosts/{}", methods: get((*call).vhost).and(put, (*call).putVhost).and(del, (*call).deleteVhost)},
		{pattern: "vhosts/{}/permissions", methods: get((*call).vhostPermissions)},
		{pattern: "users", methods: get((*call).users)},
		{pattern: "users/{}", methods: get((*call).userNamed).and(put, (*call).putUser)},
		{pattern: "users/{}/permissions", methods: get((*call).userPermissions)},
		{pattern: "permissions", methods: get((*call).permissions)},
		{pattern: "permissions/{}/{}", methods: get((*call).permission).and(put, (*call).putPermission)},
	})
}

// find splits the path as it came, then decodes each segment: names may have any character.
func (a *api) find(escaped string) (*endpoint, []string, error) {
	path, ok := strings.CutPrefix(escaped, "/api/")
	if !ok {
		return nil, nil, errNotFound
	}
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i := range a.endpoints {
		if args, ok := match(a.endpoints[i].pattern, segments); ok {
			for n := range args {
				var err error
				if args[n], err = url.PathUnescape(args[n]); err != nil {
					return nil, nil, badRequest("the path has a wrong escape: %v", err)
				}
			}
			return &a.endpoints[i], args, nil
		}
	}
	return nil, nil, errNotFound
}

func match(pattern string, segments []string) (args []string, ok bool) {
	n := 0
	for want := range strings.SplitSeq(pattern, "/") {
		if n == len(segments) || want != "{}" && want != segments[n] {
			return nil, false
		}
		if want == "{}" {
			args = append(args, segments[n])
		}
		n++
	}
	return args, n == len(segments)
}

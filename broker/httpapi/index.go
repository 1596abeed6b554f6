package httpapi

// indexPage names the endpoints to a person; {version} is replaced.
const indexPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Warren</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}dt{font-family:monospace}</style>
<h1>Warren {version}</h1>
<dl>
<dt><a href="/healthz/live">/healthz/live</a><dd>200 while this process should be kept
<dt><a href="/healthz/ready">/healthz/ready</a><dd>200 when this node knows a leader and has caught up, otherwise 503 and why
<dt><a href="/v1/cluster">/v1/cluster</a><dd>members, leader, term, indexes and state hashes, as JSON
<dt><a href="/metrics">/metrics</a><dd>figures for Prometheus
<dt><a href="/api/overview">/api</a><dd>RabbitMQ's management API, in part; needs a login
</dl>
</html>
`

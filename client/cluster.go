package client

import (
	"context"

	"github.com/warrenmq/warren/protocol/native"
)

// ClusterStatus asks the leader for the state of the cluster.
func (c *Connection) ClusterStatus(ctx context.Context) (native.ClusterStatus, error) {
	var ok native.ClusterStatusOK
	err := c.do(ctx, &call{answer: &ok}, func(rid uint64) native.Frame {
		return &native.ClusterStatusRequest{Head: native.Head{RID: rid, Channel: controlChannel}}
	})
	return ok.ClusterStatus, err
}

// PutVhost creates a virtual host; it succeeds when it exists.
func (c *Connection) PutVhost(ctx context.Context, name string) error {
	return c.do(ctx, &call{}, func(rid uint64) native.Frame {
		return &native.VhostPut{Head: native.Head{RID: rid, Channel: controlChannel}, Name: name}
	})
}

// DeleteVhost removes a virtual host with all that is in it.
func (c *Connection) DeleteVhost(ctx context.Context, name string) error {
	return c.do(ctx, &call{}, func(rid uint64) native.Frame {
		return &native.VhostDelete{Head: native.Head{RID: rid, Channel: controlChannel}, Name: name}
	})
}

// ListPage asks for one page (from 1) of a kind's rows whose name contains filter; native.DecodeRows reads them.
func (c *Connection) ListPage(ctx context.Context, kind, filter string, page, size uint32) (total uint64, rows [][]byte, err error) {
	var ok native.ListOK
	err = c.do(ctx, &call{answer: &ok}, func(rid uint64) native.Frame {
		return &native.List{Head: native.Head{RID: rid, Channel: controlChannel}, Kind: kind, Name: filter, Page: page, PageSize: size}
	})
	return ok.Total, ok.Rows, err
}

func list[T any, P interface {
	*T
	native.Row
}](ctx context.Context, c *Connection, kind, filter string) ([]T, error) {
	var all []T
	for page := uint32(1); ; page++ {
		total, raw, err := c.ListPage(ctx, kind, filter, page, 500)
		if err != nil {
			return nil, err
		}
		rows, err := native.DecodeRows[T, P](raw)
		if err != nil {
			return nil, err
		}
		if all = append(all, rows...); len(rows) == 0 || uint64(len(all)) >= total {
			return all, nil
		}
	}
}

// Vhosts lists the virtual hosts whose name contains filter.
func (c *Connection) Vhosts(ctx context.Context, filter string) ([]native.VhostRow, error) {
	return list[native.VhostRow](ctx, c, native.ListVhosts, filter)
}

// Exchanges lists the exchanges of the connection's vhost whose name contains filter.
func (c *Connection) Exchanges(ctx context.Context, filter string) ([]native.ExchangeRow, error) {
	return list[native.ExchangeRow](ctx, c, native.ListExchanges, filter)
}

// Queues lists the queues of the connection's vhost whose name contains filter.
func (c *Connection) Queues(ctx context.Context, filter string) ([]native.QueueRow, error) {
	return list[native.QueueRow](ctx, c, native.ListQueues, filter)
}

// Bindings lists the bindings of the connection's vhost whose source, destination or key contains filter.
func (c *Connection) Bindings(ctx context.Context, filter string) ([]native.BindingRow, error) {
	return list[native.BindingRow](ctx, c, native.ListBindings, filter)
}

// Consumers lists the consumers of the connection's vhost whose queue or tag contains filter.
func (c *Connection) Consumers(ctx context.Context, filter string) ([]native.ConsumerRow, error) {
	return list[native.ConsumerRow](ctx, c, native.ListConsumers, filter)
}

// Connections lists the client connections whose name contains filter.
func (c *Connection) Connections(ctx context.Context, filter string) ([]native.ConnectionRow, error) {
	return list[native.ConnectionRow](ctx, c, native.ListConnections, filter)
}

//go:build faults

package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// decided is a transaction of derived state that etcd accepted.
type decided struct {
	server   string // the server that sent it
	term     int64  // the creation revision of the leader's election key
	revision int64  // revision at which etcd wrote it
}

// record is what servers have etcd do, noted between them and etcd.
type record struct {
	mu      sync.Mutex
	decided []decided
	// sending is called with the server that sends derived state, before etcd has it;
	// nil = nobody asks.
	sending func(server string)
}

// ask has a function called with every server that sends derived state from now on; nil
// ends it.
func (r *record) ask(sending func(server string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = sending
}

// send is called when a server sends derived state, before it is forwarded.
func (r *record) send(server string) {
	r.mu.Lock()
	sending := r.sending
	r.mu.Unlock()
	if sending != nil {
		sending(server)
	}
}

func (r *record) note(d decided) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided = append(r.decided, d)
}

func (r *record) all() []decided {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]decided(nil), r.decided...)
}

// tap passes the calls of one server on to one member of etcd, and notes what it decides.
type tap struct {
	server  string
	record  *record
	member  *grpc.ClientConn
	address string
}

func startTap(t testing.TB, server, member string, r *record) *tap {
	t.Helper()
	connection, err := grpc.NewClient("passthrough:///"+member, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1, MaxDelay: 50 * time.Millisecond}}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &tap{server: server, record: r, member: connection, address: listener.Addr().String()}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(x.carry), grpc.MaxRecvMsgSize(64<<20))
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(listener) }) // until Stop
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
		connection.Close()
	})
	return x
}

// carry forwards one call.
func (x *tap) carry(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	from, _ := metadata.FromIncomingContext(in.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(in.Context(), from))
	defer cancel()
	out, err := x.member.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	var term int64 // of the transaction, 0 = no derived state
	requested := make(chan struct{})
	go func() {
		var once sync.Once
		defer once.Do(func() { close(requested) })
		for {
			var f frame
			if in.RecvMsg(&f) != nil {
				_ = out.CloseSend() // the error is returned at the end of the call
				return
			}
			if method == "/etcdserverpb.KV/Txn" {
				if term = termOf(f); term > 0 {
					x.record.send(x.server)
				}
			}
			once.Do(func() { close(requested) })
			if out.SendMsg(&f) != nil {
				return
			}
		}
	}()
	for {
		var f frame
		if err := out.RecvMsg(&f); err != nil {
			in.SetTrailer(out.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		<-requested
		if term != 0 {
			x.note(term, f)
		}
		if err := in.SendMsg(&f); err != nil {
			return err
		}
	}
}

// note records an accepted transaction.
func (x *tap) note(term int64, f frame) {
	var answer etcdserverpb.TxnResponse
	if proto.Unmarshal(f.bytes, &answer) != nil || !answer.Succeeded {
		return
	}
	x.record.note(decided{x.server, term, answer.Header.Revision})
}

// termOf returns the term in which a transaction writes derived state, or 0 if it writes none.
func termOf(f frame) int64 {
	var txn etcdserverpb.TxnRequest
	if proto.Unmarshal(f.bytes, &txn) != nil {
		return 0
	}
	derives := false
	for _, op := range txn.Success {
		put := op.GetRequestPut()
		derives = derives || put != nil && strings.HasPrefix(string(put.Key), "/v1/status/")
	}
	if !derives {
		return 0
	}
	for _, c := range txn.Compare {
		if c.Target == etcdserverpb.Compare_CREATE && strings.HasPrefix(string(c.Key), "/v1/sys/live/servers/") {
			return c.GetCreateRevision()
		}
	}
	return -1 // not written by a leader
}

// frame is a message that is not parsed.
type frame struct{ bytes []byte }

// rawCodec leaves messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*frame).bytes)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*frame).bytes = data.Materialize()
	return nil
}

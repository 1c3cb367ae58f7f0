package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// workPeriod is how often the work of a leader does an operation at the register.
const workPeriod = 50 * time.Millisecond

// countingLock remembers the leaseTransitions of the newest record that this process wrote with success. Nothing in
// client-go tells them to the work, which needs them as a fencing token; 0 while none is known.
type countingLock struct {
	resourcelock.Interface
	transitions atomic.Int64
}

func (l *countingLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, l.Interface.Create(ctx, record))
}

func (l *countingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, l.Interface.Update(ctx, record))
}

func (l *countingLock) note(record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil {
		l.transitions.Store(int64(record.LeaderTransitions))
	}
	return err
}

// register is where the work of a leader goes.
type register struct {
	url     string
	client  http.Client
	periods atomic.Int64
}

func newRegister(url string) *register {
	return &register{url: url, client: http.Client{Timeout: time.Second}}
}

// work does an operation in every period in which it may, until ctx ends, as work that is given to OnStartedLeading does.
func (r *register) work(ctx context.Context, token int64, may func() bool) {
	period := r.periods.Add(1)
	url := fmt.Sprintf("%s/%d/%d", r.url, period, token)
	ticker := time.NewTicker(workPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if ctx.Err() != nil {
			return
		}
		if !may() {
			continue
		}
		// What fails is left, as the next one comes soon.
		if response, err := r.client.Post(url, "", nil); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
}

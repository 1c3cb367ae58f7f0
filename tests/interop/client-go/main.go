// Command candidate runs an unmodified client-go leader elector and reports, one JSON line per event on
// stdout, what it believes and when. Elector's interop tests run it beside candidates of their own.
//
// Events: "start" (the elector is about to run), "leading" (OnStartedLeading), "work-stopped" (the work
// has returned after its context was cancelled) and "lost" (OnStoppedLeading after it had led). client-go
// writes its release before it cancels the work when it loses its lease, so "work-stopped" says when the
// work really ended, not when the lease became free.
//
// It exits with 0 after SIGTERM or SIGINT, with 1 when it lost its lease (as Kubernetes' own components
// do, unless --rejoin is given), and with 2 on bad input.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// options is the command line.
type options struct {
	kubeconfig       string
	namespace        string
	lease            string
	name             string
	binaryVersion    string
	emulationVersion string
	strategy         string
	coordinated      bool
	leaseDuration    time.Duration
	renewDeadline    time.Duration
	retryPeriod      time.Duration
	releaseOnCancel  bool
	rejoin           bool
	register         string
	ask              bool
}

func parse() (options, error) {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "path of the kubeconfig")
	flag.StringVar(&o.namespace, "namespace", "default", "namespace of the Lease and of the LeaseCandidate")
	flag.StringVar(&o.lease, "lease", "", "name of the Lease")
	flag.StringVar(&o.name, "name", "", "identity, and the candidate's name")
	flag.StringVar(&o.binaryVersion, "binary-version", "1.0.0", "binary version of the candidate")
	flag.StringVar(&o.emulationVersion, "emulation-version", "1.0.0", "emulation version of the candidate")
	flag.StringVar(&o.strategy, "strategy", string(coordinationv1.OldestEmulationVersion), "strategy the candidate asks for")
	flag.BoolVar(&o.coordinated, "coordinated", true, "wait to be elected instead of taking the Lease")
	flag.DurationVar(&o.leaseDuration, "lease-duration", 15*time.Second, "lease duration")
	flag.DurationVar(&o.renewDeadline, "renew-deadline", 10*time.Second, "renew deadline")
	flag.DurationVar(&o.retryPeriod, "retry-period", 2*time.Second, "retry period")
	flag.BoolVar(&o.releaseOnCancel, "release-on-cancel", false, "release the Lease at the end")
	flag.BoolVar(&o.rejoin, "rejoin", false, "campaign again after the Lease was lost")
	flag.StringVar(&o.register, "register", "", "while it leads, POST to this URL every 50 ms, followed by /STINT/TOKEN")
	flag.BoolVar(&o.ask, "ask", false, "ask IsLeader() before each POST")
	klog.InitFlags(nil)
	flag.Parse()

	switch {
	case flag.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case o.kubeconfig == "":
		return o, errors.New("--kubeconfig is required")
	case o.lease == "" || o.name == "":
		return o, errors.New("--lease and --name are required")
	}
	return o, nil
}

// reporter writes the event lines; the work and the elector report from different goroutines.
type reporter struct {
	mu   sync.Mutex
	name string
}

func (r *reporter) event(event string) {
	now := time.Now().UTC()
	line, err := json.Marshal(struct {
		Event string `json:"event"`
		Name  string `json:"name"`
		Time  string `json:"time"`
	}{event, r.name, now.Format(metav1.RFC3339Micro)})
	if err != nil {
		panic(err) // three strings always marshal
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Println(string(line))
}

// onBecameLeader is an event recorder: client-go records "NAME became leader" synchronously, before it starts
// the work's goroutine, which is the only certain sign that there will be work to wait for.
type onBecameLeader func()

func (f onBecameLeader) Eventf(_ runtime.Object, _, _, format string, arguments ...interface{}) {
	if strings.HasSuffix(fmt.Sprintf(format, arguments...), "became leader") {
		f()
	}
}

// campaign runs one elector until it loses its lease or ctx ends.
func campaign(ctx context.Context, o options, client kubernetes.Interface, r *reporter, at *register) error {
	var work sync.WaitGroup
	led := false
	lock := &countingLock{Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.lease},
		Client:    client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{
			Identity: o.name,
			EventRecorder: onBecameLeader(func() {
				led = true
				work.Add(1)
			}),
		},
	}}
	var elector *leaderelection.LeaderElector
	may := func() bool { return !o.ask || elector.IsLeader() }
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   o.leaseDuration,
		RenewDeadline:   o.renewDeadline,
		RetryPeriod:     o.retryPeriod,
		ReleaseOnCancel: o.releaseOnCancel,
		Name:            o.lease,
		Coordinated:     o.coordinated,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer work.Done()
				r.event("leading")
				if at != nil {
					at.work(ctx, lock.transitions.Load(), may)
				}
				<-ctx.Done()
				r.event("work-stopped")
			},
			OnStoppedLeading: func() {
				if led {
					work.Wait()
					r.event("lost")
				}
			},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

func run(o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	if o.coordinated {
		candidate, informers, err := newCandidate(client, o)
		if err != nil {
			return err
		}
		go candidate.Run(ctx)
		informers.WaitForCacheSync(ctx.Done())
	}

	r := &reporter{name: o.name}
	r.event("start")
	var at *register
	if o.register != "" {
		at = newRegister(o.register)
	}
	for {
		if err := campaign(ctx, o, client, r, at); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if !o.rejoin {
			return errLost
		}
	}
}

var errLost = errors.New("the lease was lost")

func main() {
	o, err := parse()
	if err == nil {
		err = run(o)
	}
	switch {
	case err == nil:
	case errors.Is(err, errLost):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "candidate:", err)
		os.Exit(2)
	}
}

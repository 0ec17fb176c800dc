import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import type { FaultSetting } from '../../../sandbox';
import { hasCode } from '../../../src/entries/client';
import { isTransient } from '../../../src/temporal/grpc-status';
import type { ProcessEnvironment } from '../process-environment';
import type { RestartableServer } from '../restartable-server';
import type { WorkerProcess } from '../worker-process';

/** The workers' time limit of one exchange: above the longest answer of a slow service. */
export const HTTP_TIMEOUT = '7s';

/** Reads are up to five seconds behind, and a message is taken up to three seconds late: together the callers' `maxStaleness`. */
export const MAX_STALENESS = '8s';

/** About every second message meets something, and every tenth read; besides, many are slow or behind. */
export const FAULTS: readonly FaultSetting[] = [
  ...[
    ...['http-429', 'http-503', 'redirect', 'close-before-read', 'reset', 'hang', 'truncated'],
    ...['processed-then-close', 'processed-then-reset', 'processed-then-503', 'processed-then-timeout'],
  ].map((name) => ({ name, operation: 'message', chance: 0.035 }) as const),
  { name: 'slow', operation: 'message', chance: 0.06, parameters: { delay: '6s', processed: 'before' } },
  { name: 'slow', operation: 'message', chance: 0.04, parameters: { delay: '5s', processed: 'after' } },
  { name: 'html', operation: 'message', chance: 0.02, parameters: { processed: 'yes' } },
  { name: 'stale', operation: 'message', chance: 0.2, parameters: { for: '3s' } },
  { name: 'late-take-up', operation: 'message', chance: 0.6, parameters: { upTo: '3s' } },
  ...['http-429', 'http-503', 'reset', 'hang', 'not-found', 'html'].map((name) => {
    return { name, operation: 'get', chance: 0.015 } as const;
  }),
  { name: 'slow', operation: 'get', chance: 0.03, parameters: { delay: '500ms' } },
  { name: 'lag', operation: 'get', chance: 0.5, parameters: { upTo: '5s' } },
];

/** A restart of the server costs everybody some seconds. */
const MAX_RESTARTS = 2;

/** Two workers and the server. In the end all of them work. */
export class Machines {
  readonly counts = { kill: 0, freeze: 0, restart: 0 };
  private rejectDied: (error: Error) => void = () => undefined;
  private readonly killed = new Set<WorkerProcess>();
  /** Rejects with the last words of a worker that ends and that nobody has killed. */
  readonly died = new Promise<never>((_, reject) => (this.rejectDied = reject));
  private readonly workers: WorkerProcess[] = [];

  constructor(
    private readonly environment: ProcessEnvironment,
    private readonly server: RestartableServer,
    private readonly random: () => number,
  ) {}

  async start(): Promise<void> {
    await Promise.all([this.hire(0), this.hire(1)]);
  }

  /** Every few seconds one is killed or frozen, or the server is killed and started again. */
  async run(stop: AbortSignal): Promise<void> {
    // Whatever chance brings, one is killed.
    for (let event = 0; !stop.aborted; event = this.random()) {
      const place = this.random() < 0.5 ? 0 : 1;
      if (event < 0.6) await this.replace(place);
      else if (event < 0.85) await this.freeze(place, 2_000 + 8_000 * this.random());
      else if (this.counts.restart < MAX_RESTARTS) {
        await this.server.restart();
        this.counts.restart += 1;
      }
      await sleep(1_000 + 5_000 * this.random(), undefined, { signal: stop }).catch(() => undefined);
    }
  }

  private async hire(place: number): Promise<void> {
    const worker = await this.environment.startWorker();
    this.workers[place] = worker;
    void worker.exited.then((exit) => {
      const said = `${JSON.stringify(exit)} ${worker.stdout}${worker.stderr}`;
      if (!this.killed.has(worker)) this.rejectDied(new Error(`a worker ended: ${said}`));
    });
  }

  private async replace(place: number): Promise<void> {
    const worker = this.workers[place];
    if (worker) this.killed.add(worker);
    await worker?.stop();
    this.counts.kill += 1;
    await this.hire(place);
  }

  private async freeze(place: number, forMs: number): Promise<void> {
    this.workers[place]?.signal('SIGSTOP');
    await sleep(forMs);
    this.workers[place]?.signal('SIGCONT');
    this.counts.freeze += 1;
  }
}

/**
 * What people do, each thing within half a second of the one before it, until `stop`.
 *
 * @returns how often each was done; in brackets what they were told could not be
 */
export async function runRandomOperations(
  operations: Readonly<Record<string, () => Promise<unknown>>>,
  random: () => number,
  stop: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const all: Promise<string>[] = [];
  const names = Object.keys(operations);
  while (!stop.aborted) {
    const name = names[Math.floor(random() * names.length)] ?? '';
    const done = Promise.resolve(operations[name]?.()).then(
      () => name,
      (error: unknown) => {
        if (!isExpected(error)) throw new Error(name, { cause: error });
        return `(${name})`;
      },
    );
    // It is told at the end.
    done.catch(() => undefined);
    all.push(done);
    await sleep(random() * 500);
  }
  const counts: Record<string, number> = {};
  for (const how of await Promise.all(all)) counts[how] = (counts[how] ?? 0) + 1;
  return counts;
}

/** Beside the words of a server that is away, what somebody hears who comes late or second; anything else is a bug. */
function isExpected(error: unknown): boolean {
  // What the client does not know itself is the cause of its error.
  if (hasCode(error, 'UNEXPECTED_FAILURE')) return isExpected(error.cause);
  return (
    hasCode(error, 'ALREADY_ENDED', 'STILL_RUNNING', 'UPDATE_REJECTED', 'CONFLICT', 'NOT_FOUND') ||
    hasCode(error, 'UNREACHABLE', 'START_UNCONFIRMED', 'WAIT_TIMEOUT') ||
    error instanceof WorkflowNotFoundError ||
    isGrpcServiceError(error) ||
    isTransient(error)
  );
}

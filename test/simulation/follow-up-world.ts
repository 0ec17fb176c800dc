import type { Client } from '@temporalio/client';
import { msNumberToTs } from '@temporalio/common/lib/time';
import { readProgress } from '../../src/client/progress';
import type { JobLockHolder } from '../../src/contract/send-result';
import { jobLockWorkflowId } from '../../src/contract/ids';
import {
  FOLLOW_UP_WORKFLOW,
  JOB_LOCK_WORKFLOW,
  MEMO_JOB_LOCK_HOLDER,
  MEMO_START_DELAY,
  QUERY_PROGRESS,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../../src/contract/names';
import { type FollowUpProgress, PHASES } from '../../src/contract/result';
import { followUpStartOptions } from '../../src/contract/follow-up-start-options';
import { findGrpcError } from '../../src/temporal/grpc-status';
import type { Operation, MachineOperation } from './operations';
import type { AgentService, Request } from './agent-service';
import type { Plan, PlannedLock } from './plan';
import { fromPayload, toPayload } from './temporal/history';
import type { PendingActivity } from './temporal/pending-activity';
import type { Run } from './temporal/run';
import { startRequest } from './temporal/server';
import { createClient } from './temporal/simulated-client';
import type { UpdateEnd } from './temporal/updates';
import { replayRun } from './worker/cached-run';
import {
  isClientError,
  LOCK_HOLDER_WORKFLOW,
  MAX_FAILURES,
  WORKFLOWS_WITHOUT_WORKER,
  TASK_QUEUES,
  World,
} from './world';

/** In one of this number of worlds, whole histories are also replayed. Evictions replay only the beginning of a history. */
const WHOLE_REPLAYS = 4;

/** Points at which callers query the progress. */
const PROGRESS_POINT =
  /^(task recorded|permission recorded|post (started|reached|processed|received)|sendMessage reported)$/;

/** A world with one follow-up and its job. */
export class FollowUpWorld extends World<Plan, Operation, UpdateEnd> {
  /** The pauses of the send activity: the attempt in progress or the next attempt, and the times. */
  readonly pauses: { readonly attempt: string; readonly from: number; readonly until: number }[] = [];
  /** The response to the query `progress` after the end of a run. */
  readonly progress = new Map<Run, unknown>();
  /** Callers that query the progress: a caller with a fast connection, and a caller with a slow one. */
  private readonly caller = this.newClient('a caller', 0);
  private readonly slowCaller = this.newClient('a slow caller', 5_000);

  /** The operations of callers, operators and other clients of the agent service. */
  protected override readonly operationHandlers = {
    'poll now': () => this.update(UPDATE_POLL_NOW),
    extend: ({ duration }) => this.update(UPDATE_EXTEND_DEADLINE, duration),
    decide: ({ decision, names }) => {
      const { runId, start } = this.latest;
      const named = { latest: [runId], first: [start.firstRunId], nothing: [] }[names];
      return this.update(UPDATE_RESOLVE_DELIVERY, decision, ...named);
    },
    reset: ({ share }) => {
      const points = this.latest.resetPoints();
      const point = points[Math.floor(share * points.length)];
      return point !== undefined && this.server.reset(this.latest, point) !== null;
    },
    'pause send': ({ ms }) =>
      this.onActivity('sendMessage', (activity) => {
        const { clock, pauses } = this;
        if (activity.paused) return;
        activity.pause();
        pauses.push({ attempt: activity.token, from: clock.now, until: clock.now + ms });
        clock.after(ms, () => activity.unpause());
      }),
    'send reset': () => this.onActivity('sendMessage', (send) => send.reset()),
    'poll reset': () => this.onActivity('pollJob', (poll) => poll.reset()),
    'limit attempts': () => this.onActivity('sendMessage', (send) => send.allowAttempts(1)),
    'complete by hand': ({ activity, value }) =>
      this.onActivity(activity, (pending) => pending.completeManually(toPayload(value))),
    'start again': () => {
      if (this.startFollowUp() !== null) this.failures.push('a repeated start started another run');
    },
    cancel: () => this.latest.requestCancel(),
    terminate: () => this.latest.terminate(),
    signal: () => this.latest.signal('of another client'),
    'hold queue': ({ queue, ms }) => this.server.hold(queue, ms),
    'turn by another client': ({ ms, outcome }) => {
      this.service.life.receive('of another client', { durationMs: ms, outcome });
    },
    'change job': ({ status }) => this.service.life.change({ status }),
  } satisfies World<Plan, Operation>['operationHandlers'];

  get service(): AgentService {
    const [service] = this.services.values();
    if (service === undefined) throw new Error('the world has no job');
    return service;
  }

  /** The runs of the follow-up. The Temporal server also has the runs of the job lock. */
  get runs(): readonly Run[] {
    return this.server.runs.filter(({ start }) => start.workflowType === FOLLOW_UP_WORKFLOW);
  }

  /** The runs of the job lock that the follow-up has acquired. */
  get locks(): readonly Run[] {
    const [first] = this.runs;
    return this.server.runs.filter(({ start }) => {
      const holder = fromPayload(start.memo[MEMO_JOB_LOCK_HOLDER]) as JobLockHolder | undefined;
      return start.workflowType === JOB_LOCK_WORKFLOW && holder?.firstRunId === first?.start.firstRunId;
    });
  }

  override get latest(): Run {
    const run = this.runs.at(-1);
    if (run === undefined) throw new Error('no follow-up was started');
    return run;
  }

  protected override startPlan(): void {
    if (this.plan.lock !== null) this.holdLock(this.plan.lock);
    this.startFollowUp();
  }

  private startFollowUp(): Run | null {
    const { request, startDelayMs } = this.plan;
    const { workflowId, memo, typedSearchAttributes } = followUpStartOptions(request);
    const identity = [workflowId, FOLLOW_UP_WORKFLOW, TASK_QUEUES.followUp] as const;
    const delay = startDelayMs > 0 ? { [MEMO_START_DELAY]: startDelayMs } : {};
    const start = startRequest(...identity, request, { ...memo, ...delay }, typedSearchAttributes);
    return this.server.start(startDelayMs > 0 ? { ...start, ...delayedBy(startDelayMs) } : start);
  }

  /** Starts the job lock of another follow-up. Both are workflows without workflow tasks, which end after `heldMs`. */
  private holdLock({ heldMs, end }: PlannedLock): void {
    const { projectId, jobId } = this.plan.request;
    const start = (workflowId: string, type: string, memo: Readonly<Record<string, unknown>>) =>
      this.server.start({
        ...startRequest(workflowId, type, TASK_QUEUES.followUp, null, memo, []),
        ...delayedBy(365 * 86_400_000),
      });
    const holder = end === 'foreign' ? null : start('another follow-up', LOCK_HOLDER_WORKFLOW, {});
    const memo = holder && {
      [MEMO_JOB_LOCK_HOLDER]: { workflowId: holder.workflowId, firstRunId: holder.runId },
    };
    const lock = start(jobLockWorkflowId(projectId, jobId), JOB_LOCK_WORKFLOW, memo ?? {});
    if (end === 'never') return;
    this.server.clock.after(heldMs, () => {
      if (end !== 'left') lock?.terminate();
      holder?.terminate();
    });
  }

  protected override queryOf({ start }: Run): string | undefined {
    return this.isSecondPlay || start.workflowType !== FOLLOW_UP_WORKFLOW ? undefined : QUERY_PROGRESS;
  }

  /** Compares the progress that callers get at this moment with the requests that the agent service has. */
  private compareProgress(): void {
    const run = this.latest;
    if (this.isSecondPlay || !run.isOpen || run.progress === undefined) return;
    this.checkProgress('the query', run.progress as FollowUpProgress, this.startedPosts);
    // The calls run outside of the worker's process, because a caller has another clock.
    this.clock.after(0, () => void this.readAsCaller(this.caller));
    this.clock.after(0, () => void this.readAsCaller(this.slowCaller));
  }

  private async readAsCaller(caller: Client): Promise<void> {
    const { latest: run } = this;
    if (!run.isOpen) return;
    const posts = this.startedPosts;
    const report = await readProgress(caller, run).catch((error: unknown) => {
      // The call may fail because the Temporal server does not respond in time.
      if (!isClientError(error) && findGrpcError(error) === undefined) throw error;
    });
    if (report?.from === 'worker') this.checkProgress('the client', report.progress, posts);
  }

  /**
   * Whether the Temporal server may accept the heartbeats of a frozen attempt, because an operator reset the send in a later attempt. In
   * this case, which docs/guarantees.md lists as not covered, the message may be sent twice, and the record of a POST may be lost.
   */
  get mayMixUpAttempts(): boolean {
    return ['send reset', 'freeze'].every((kind) =>
      this.plan.operations.some(({ operation }) => operation.kind === kind),
    );
  }

  /** The POSTs whose first byte was sent. */
  private get startedPosts(): readonly Request[] {
    return this.service.requests.filter(({ point, firstByteAt }) => point === 'post' && firstByteAt !== null);
  }

  /**
   * Compares a progress with the requests. The progress must not report that no message was sent if a message may have been processed, and
   * must count at least the started POSTs.
   *
   * @param posts the POSTs that had started when the caller queried the progress
   */
  private checkProgress(
    from: string,
    { delivery, phase }: FollowUpProgress,
    posts: readonly Request[],
  ): void {
    if (this.mayMixUpAttempts) return;
    const { verdict, sends } = delivery;
    // A run that a reset made does not count the POSTs of earlier runs.
    const isReset = this.performedOfKind('reset').length > 0;
    const started = posts.filter(({ runId }) => !isReset || runId === this.latest.runId).length;
    const mayBeProcessed = posts.some(
      ({ processedAt, reachedAt }) => processedAt !== null || reachedAt === null,
    );
    const problem =
      (verdict === 'not-sent' || verdict === 'rejected') && mayBeProcessed
        ? `reports the verdict ${verdict}, but the agent service has received a message or may receive one`
        : sends < started
          ? `reports ${sends} sends, but ${started} POSTs were started`
          : PHASES.includes(phase)
            ? null
            : `reports the unknown phase ${phase}`;
    if (problem !== null && this.failures.length <= MAX_FAILURES) this.failures.push(`${from} ${problem}`);
  }

  private newClient(name: string, slowMs: number): Client {
    const { server, clock, random } = this;
    const pause = () =>
      slowMs === 0 ? undefined : clock.sleep(random.between(`${name} waits`, 0, slowMs, 3));
    const reach = async <T>(_: string, answer: () => T): Promise<T> => {
      await pause();
      const value = answer();
      await pause();
      return value;
    };
    return createClient(server, reach, { namespace: `${server.namespace} of ${name}`, identity: name });
  }

  protected override hasEnded(): boolean {
    return (
      this.pendingCount === 0 &&
      this.server.runs.every(
        ({ isOpen, start }) => !isOpen || WORKFLOWS_WITHOUT_WORKER.has(start.workflowType),
      )
    );
  }

  /** Replays the whole histories. A replay must make the same commands. */
  protected override async finish(): Promise<void> {
    if (this.isSecondPlay || this.plan.seed % WHOLE_REPLAYS > 0) return;
    for (const run of this.runs.filter((each) => each.resetPoints().length > 0))
      try {
        this.progress.set(run, await replayRun(this.workflows, run, this.clock, QUERY_PROGRESS));
      } catch (error) {
        this.failures.push(`the replay of ${run.runId} failed: ${String(error)}`);
      }
  }

  private update(name: string, ...args: unknown[]): Promise<UpdateEnd> {
    const updateId = `update-${this.performed.length}`;
    return this.latest.update({ updateId, name, input: args.map(toPayload) });
  }

  private onActivity(wanted: string, work: (activity: PendingActivity) => void): boolean {
    const activity = [...this.latest.activities.values()].find(({ name }) => name === wanted);
    if (activity !== undefined) work(activity);
    return activity !== undefined;
  }

  /** After the follow-up has ended, only a reset is possible. */
  protected override where(operation: Operation | MachineOperation): string | null {
    const { isOpen, activities } = this.latest;
    if (!isOpen && operation.kind !== 'reset') return null;
    const hasPausedSend = [...activities.values()].some(
      ({ name, paused }) => name === 'sendMessage' && paused,
    );
    return ` in phase ${isOpen ? this.phase : 'its end'}${hasPausedSend ? ' with a paused send' : ''}`;
  }

  protected override passes(point: string): boolean {
    if (PROGRESS_POINT.test(point)) this.compareProgress();
    return point !== 'task recorded';
  }
}

function delayedBy(ms: number) {
  return { workflowStartDelay: msNumberToTs(ms) };
}

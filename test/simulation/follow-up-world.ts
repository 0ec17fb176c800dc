import {
  FOLLOW_UP_WORKFLOW,
  QUERY_PROGRESS,
  TURN_WORKFLOW,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../../src/core/names';
import { followUpStart } from '../../src/core/starts';
import type { Act, MachineAct } from './acts';
import type { AgentService } from './agent-service';
import type { Plan } from './plan';
import { toPayload } from './temporal/history';
import type { PendingActivity } from './temporal/pending-activity';
import type { Run } from './temporal/run';
import { startRequest } from './temporal/server';
import type { UpdateEnd } from './temporal/updates';
import { replayed } from './worker/cached-run';
import { TASK_QUEUES, World } from './world';

/** One in so many worlds has its histories replayed as a whole, too: evictions replay the beginning of each. */
const WHOLE_REPLAYS = 4;

/** One follow-up and its job. */
export class FollowUpWorld extends World<Plan, Act, UpdateEnd> {
  /** Sends that somebody has paused, with the attempt that was under way or came next. */
  readonly pauses: { readonly attempt: string; readonly from: number; readonly until: number }[] = [];
  /** What a query has told of a run after its end. */
  readonly progress = new Map<Run, unknown>();

  /** What callers, operators and others at the service do. */
  protected override readonly acts = {
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
      this.onActivity(activity, (pending) => pending.completeByHand(toPayload(value))),
    'start again': () => {
      if (this.begin() !== null) this.broken.push('a second start began a run');
    },
    cancel: () => this.latest.requestCancel(),
    terminate: () => this.latest.terminate(),
    signal: () => this.latest.signal('of somebody else'),
    'hold queue': ({ queue, ms }) => this.server.hold(queue, ms),
    'turn of others': ({ ms, outcome }) => {
      this.service.life.receive('of others', { durationMs: ms, outcome });
    },
    'change job': ({ status }) => this.service.life.change({ status }),
  } satisfies World<Plan, Act>['acts'];

  get service(): AgentService {
    const [service] = this.services.values();
    if (service === undefined) throw new Error('there is no job');
    return service;
  }

  /** Those of the follow-up; the server has one of the turn that it takes, too. */
  get runs(): readonly Run[] {
    return this.server.runs.filter(({ start }) => start.workflowType === FOLLOW_UP_WORKFLOW);
  }

  override get latest(): Run {
    const run = this.runs.at(-1);
    if (run === undefined) throw new Error('nothing was started');
    return run;
  }

  protected override begin(): Run | null {
    const { request } = this.plan;
    const { workflowId, memo, typedSearchAttributes } = followUpStart(request);
    const of = [workflowId, FOLLOW_UP_WORKFLOW, TASK_QUEUES.followUp] as const;
    return this.server.start(startRequest(...of, request, memo, typedSearchAttributes));
  }

  protected override isOver(): boolean {
    return this.waitsFor === 0 && this.server.runs.every(({ isOpen }) => !isOpen);
  }

  /** Each history, from its beginning, gives the same commands. */
  protected override async end(): Promise<void> {
    if (this.again || this.plan.seed % WHOLE_REPLAYS > 0) return;
    for (const run of this.runs.filter((each) => each.resetPoints().length > 0))
      try {
        this.progress.set(run, await replayed(this.workflows, run, this.clock, QUERY_PROGRESS));
      } catch (error) {
        this.broken.push(`replay of ${run.runId}: ${String(error)}`);
      }
  }

  private update(name: string, ...args: unknown[]): Promise<UpdateEnd> {
    const updateId = `update-${this.done.length}`;
    return this.latest.update({ updateId, name, input: args.map(toPayload) });
  }

  private onActivity(wanted: string, work: (activity: PendingActivity) => void): boolean {
    const activity = [...this.latest.activities.values()].find(({ name }) => name === wanted);
    if (activity !== undefined) work(activity);
    return activity !== undefined;
  }

  /** Once it has ended, nothing can be done to it but to reset it. */
  protected override where(act: Act | MachineAct): string | null {
    const { isOpen, activities } = this.latest;
    if (!isOpen && act.kind !== 'reset') return null;
    const hasPausedSend = [...activities.values()].some(
      ({ name, paused }) => name === 'sendMessage' && paused,
    );
    return ` in phase ${isOpen ? this.phase : 'its end'}${hasPausedSend ? ' with a paused send' : ''}`;
  }

  /** A follow-up that waits sends in its turn only. What a run made by a reset sends, an operator has asked for. */
  protected override passes(point: string): boolean {
    if (point !== 'post begun' || this.plan.request.whenActive !== 'wait' || !this.latest.isOpen) return true;
    const isTurn = ({ start, isOpen }: Run) => isOpen && start.workflowType === TURN_WORKFLOW;
    if (!this.done.some(({ act }) => act.kind === 'reset') && !this.server.runs.some(isTurn))
      this.broken.push('a POST begins without the turn');
    return true;
  }
}

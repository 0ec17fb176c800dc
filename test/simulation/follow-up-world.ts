import { FOLLOW_UP_WORKFLOW, QUERY_PROGRESS, TURN_WORKFLOW } from '../../src/core/names';
import { followUpStart } from '../../src/core/starts';
import type { Act, MachineAct } from './acts';
import type { AgentService } from './agent-service';
import { BEGIN } from './clock';
import { type AskedUpdate, carryOut, type PausedSend } from './people';
import type { Plan } from './plan';
import type { Run } from './temporal/run';
import { startRequest } from './temporal/server';
import { replayed } from './worker/cached-run';
import { TASK_QUEUES, World } from './world';

/** Nothing lasts longer: what still runs then waits for ever. */
const HORIZON_MS = 5 * 86_400_000;

/** Far more than a world takes: more steps mean an endless loop. */
const MOST_STEPS = 50_000;

/** What is known of a world once all in it has ended. */
export type Facts = Pick<
  FollowUpWorld,
  'plan' | 'service' | 'runs' | 'updates' | 'done' | 'pauses' | 'log' | 'progress' | 'broken'
>;

/** One follow-up and its job. */
export class FollowUpWorld extends World<Plan, Act> {
  /** What people have done. */
  readonly done: Exclude<Act, MachineAct>[] = [];
  readonly updates: AskedUpdate[] = [];
  readonly pauses: PausedSend[] = [];
  /** What a query has told of a run after its end; of every fourth world. */
  readonly progress = new Map<Run, unknown>();

  /**
   * Lets the plan happen, until everything has ended.
   *
   * @param replays whether each history is replayed as a whole then
   */
  play(replays: boolean): Promise<Facts> {
    return this.run(
      () => this.server.start(this.startRequest()),
      () => this.isOver(),
      MOST_STEPS,
      async () => {
        if (replays) await this.replayAll();
      },
    );
  }

  get service(): AgentService {
    const [service] = this.services.values();
    if (service === undefined) throw new Error('there is no job');
    return service;
  }

  /** Those of the follow-up; the server has one of the turn that it takes, too. */
  get runs(): readonly Run[] {
    return this.server.runs.filter(({ start }) => start.workflowType === FOLLOW_UP_WORKFLOW);
  }

  /** The latest run of the follow-up. */
  get latest(): Run {
    const run = this.runs.at(-1);
    if (run === undefined) throw new Error('nothing was started');
    return run;
  }

  startRequest() {
    const { request } = this.plan;
    const { workflowId, memo, typedSearchAttributes } = followUpStart(request);
    const of = [workflowId, FOLLOW_UP_WORKFLOW, TASK_QUEUES.followUp] as const;
    return startRequest(...of, request, memo, typedSearchAttributes);
  }

  protected override carryOut(act: Exclude<Act, MachineAct>): boolean {
    const isDone = carryOut(this, act);
    if (isDone) this.done.push(act);
    return isDone;
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
    if (!this.done.some(({ kind }) => kind === 'reset') && !this.server.runs.some(isTurn))
      this.broken.push('a POST begins without the turn');
    return true;
  }

  private isOver(): boolean {
    if (this.clock.now - BEGIN > HORIZON_MS) return true;
    const { runs } = this.server;
    return runs.length > 0 && runs.every(({ isOpen }) => !isOpen) && this.waitsFor === 0;
  }

  /** Each history, from its beginning, gives the same commands. */
  private async replayAll(): Promise<void> {
    for (const run of this.runs.filter((each) => each.resetPoints().length > 0))
      try {
        this.progress.set(run, await replayed(this.workflows, run, this.clock, QUERY_PROGRESS));
      } catch (error) {
        this.broken.push(`replay of ${run.runId}: ${String(error)}`);
      }
  }
}

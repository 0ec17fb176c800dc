import {
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
  SIGNAL_WAKE,
} from '../../src/core/names';
import type { Act } from './plan';
import { toPayload } from './temporal/history';
import type { UpdateEnd } from './temporal/run';
import type { World } from './world';

export interface AskedUpdate {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly askedAt: number;
  /** The run that had it. */
  readonly runId: string;
  endedAt: number | null;
  end: UpdateEnd | null;
}

type PeopleAct = Exclude<
  Act,
  {
    readonly kind:
      | 'kill'
      | 'freeze'
      | 'stop'
      | 'lose'
      | 'wrong clock'
      | 'server away'
      | 'hold queue'
      | 'turn of others'
      | 'change job';
  }
>;

/** Callers and operators: what they have asked for, and what they were told. */
export class People {
  readonly updates: AskedUpdate[] = [];
  readonly resets: {
    readonly at: number;
    readonly runId: string;
    readonly of: string;
    readonly event: number;
  }[] = [];
  /** Cancelled, or terminated, by somebody. */
  readonly endings: { readonly at: number; readonly kind: 'cancel' | 'terminate'; readonly runId: string }[] =
    [];
  /** Activities that were completed by hand. */
  readonly byHand: string[] = [];
  /** Answers that nobody has yet, and what was planned for later. */
  waitsFor = 0;

  constructor(private readonly world: World) {}

  start(): void {
    this.world.server.startWorkflow(this.world.startOptions());
  }

  do(act: PeopleAct): void {
    const { world } = this;
    const { run, server, clock } = world;
    const send = () => [...run.activities.values()].find(({ name }) => name === 'sendMessage');
    switch (act.kind) {
      case 'start again':
        if (server.startWorkflow(world.startOptions()) !== null)
          world.broken.push('a second start began a run');
        return;
      case 'poll now':
        this.update(UPDATE_POLL_NOW);
        return;
      case 'extend':
        this.update(UPDATE_EXTEND_DEADLINE, act.duration);
        return;
      case 'decide': {
        const named = { latest: run.runId, first: run.start.firstRunId, nothing: undefined }[act.names];
        this.update(UPDATE_RESOLVE_DELIVERY, act.decision, ...(named === undefined ? [] : [named]));
        return;
      }
      case 'cancel':
        if (run.isOpen) this.endings.push({ at: clock.now, kind: 'cancel', runId: run.runId });
        run.requestCancel();
        return;
      case 'terminate':
        if (run.isOpen) this.endings.push({ at: clock.now, kind: 'terminate', runId: run.runId });
        run.terminate();
        return;
      case 'wake':
        run.signal(SIGNAL_WAKE);
        return;
      case 'reset': {
        const points = run.resetPoints();
        const point = points[Math.floor(act.share * points.length)];
        const next = point === undefined ? null : server.reset(run, point);
        if (next !== null && point !== undefined)
          this.resets.push({ at: clock.now, runId: next.runId, of: run.runId, event: point.startedAt + 1 });
        return;
      }
      case 'pause send': {
        const activity = send();
        activity?.pause();
        clock.after(act.ms, () => {
          activity?.unpause();
        });
        return;
      }
      case 'reset send':
        send()?.reset();
        return;
      case 'reset poll':
        [...run.activities.values()].find(({ name }) => name === 'pollJob')?.reset();
        return;
      case 'raise attempts':
        send()?.allowAttempts(3);
        return;
      case 'complete by hand': {
        const activity = [...run.activities.values()].find(({ name }) => name === act.activity);
        if (activity === undefined) return;
        this.byHand.push(act.activity);
        activity.completeByHand(toPayload(act.value));
      }
    }
  }

  private update(name: string, ...args: unknown[]): void {
    const { clock, run } = this.world;
    const asked: AskedUpdate = { name, args, askedAt: clock.now, runId: run.runId, endedAt: null, end: null };
    this.updates.push(asked);
    this.waitsFor += 1;
    const updateId = `update-${this.updates.length}`;
    void run.update({ updateId, name, input: args.map(toPayload) }).then((end) => {
      this.waitsFor -= 1;
      Object.assign(asked, { end, endedAt: clock.now });
      this.world.say('people', `${name} ${args.join(' ')}: ${end.kind}`);
    });
  }
}

import { UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW, UPDATE_RESOLVE_DELIVERY } from '../../src/core/names';
import type { Act, MachineAct } from './acts';
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

type PeopleAct = Exclude<Act, MachineAct | { readonly kind: 'hold queue' | 'turn of others' | 'change job' }>;

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

  /** @returns whether there was something to do it to */
  do(act: PeopleAct): boolean {
    const { world } = this;
    const { run, server, clock } = world;
    const pending = (wanted: string) => [...run.activities.values()].find(({ name }) => name === wanted);
    switch (act.kind) {
      case 'start again':
        if (server.startWorkflow(world.startOptions()) !== null)
          world.broken.push('a second start began a run');
        return true;
      case 'poll now':
        return this.update(UPDATE_POLL_NOW);
      case 'extend':
        return this.update(UPDATE_EXTEND_DEADLINE, act.duration);
      case 'decide': {
        const named = { latest: run.runId, first: run.start.firstRunId, nothing: undefined }[act.names];
        return this.update(UPDATE_RESOLVE_DELIVERY, act.decision, ...(named === undefined ? [] : [named]));
      }
      case 'cancel':
        this.endings.push({ at: clock.now, kind: 'cancel', runId: run.runId });
        run.requestCancel();
        return true;
      case 'terminate':
        this.endings.push({ at: clock.now, kind: 'terminate', runId: run.runId });
        run.terminate();
        return true;
      case 'reset': {
        const points = run.resetPoints();
        const point = points[Math.floor(act.share * points.length)];
        const next = point === undefined ? null : server.reset(run, point);
        if (next === null || point === undefined) return false;
        this.resets.push({ at: clock.now, runId: next.runId, of: run.runId, event: point.startedAt + 1 });
        return true;
      }
      case 'pause send': {
        const activity = pending('sendMessage');
        activity?.pause();
        clock.after(act.ms, () => activity?.unpause());
        return activity !== undefined;
      }
      case 'reset send':
      case 'reset poll': {
        const activity = pending(act.kind === 'reset send' ? 'sendMessage' : 'pollJob');
        activity?.reset();
        return activity !== undefined;
      }
      case 'limit attempts': {
        const activity = pending('sendMessage');
        activity?.allowAttempts(1);
        return activity !== undefined;
      }
      case 'complete by hand': {
        const activity = pending(act.activity);
        if (activity === undefined) return false;
        this.byHand.push(act.activity);
        activity.completeByHand(toPayload(act.value));
        return true;
      }
    }
  }

  private update(name: string, ...args: unknown[]): true {
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
    return true;
  }
}

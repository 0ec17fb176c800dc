import { UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW, UPDATE_RESOLVE_DELIVERY } from '../../src/core/names';
import type { Act, MachineAct } from './acts';
import { toPayload } from './temporal/history';
import type { PendingActivity } from './temporal/pending-activity';
import type { UpdateEnd } from './temporal/updates';
import type { FollowUpWorld } from './follow-up-world';

/** An update that somebody has made, and what they were told. */
export interface AskedUpdate {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly askedAt: number;
  endedAt: number | null;
  end: UpdateEnd | null;
}

/** A send that somebody has paused, with the attempt that was under way or came next. */
export interface PausedSend {
  readonly attempt: string;
  readonly from: number;
  readonly until: number;
}

/** What callers, operators and others at the service do. @returns whether there was something to do it to */
export function carryOut(world: FollowUpWorld, act: Exclude<Act, MachineAct>): boolean {
  const { latest: run, server, clock, service } = world;
  const onActivity = (wanted: string, work: (activity: PendingActivity) => void) => {
    const activity = [...run.activities.values()].find(({ name }) => name === wanted);
    if (activity !== undefined) work(activity);
    return activity !== undefined;
  };
  switch (act.kind) {
    case 'start again':
      if (server.start(world.startRequest()) !== null) world.broken.push('a second start began a run');
      return true;
    case 'poll now':
      return update(world, UPDATE_POLL_NOW);
    case 'extend':
      return update(world, UPDATE_EXTEND_DEADLINE, act.duration);
    case 'decide': {
      const named = { latest: [run.runId], first: [run.start.firstRunId], nothing: [] }[act.names];
      return update(world, UPDATE_RESOLVE_DELIVERY, act.decision, ...named);
    }
    case 'cancel':
      run.requestCancel();
      return true;
    case 'terminate':
      run.terminate();
      return true;
    case 'signal':
      run.signal('of somebody else');
      return true;
    case 'reset': {
      const points = run.resetPoints();
      const point = points[Math.floor(act.share * points.length)];
      return point !== undefined && server.reset(run, point) !== null;
    }
    case 'pause send':
      return onActivity('sendMessage', (activity) => {
        if (activity.paused) return;
        activity.pause();
        world.pauses.push({ attempt: activity.token, from: clock.now, until: clock.now + act.ms });
        clock.after(act.ms, () => activity.unpause());
      });
    case 'send reset':
      return onActivity('sendMessage', (activity) => activity.reset());
    case 'poll reset':
      return onActivity('pollJob', (activity) => activity.reset());
    case 'limit attempts':
      return onActivity('sendMessage', (activity) => activity.allowAttempts(1));
    case 'complete by hand':
      return onActivity(act.activity, (activity) => activity.completeByHand(toPayload(act.value)));
    case 'hold queue':
      server.hold(act.queue, act.ms);
      return true;
    case 'turn of others':
      service.life.receive('of others', { durationMs: act.ms, outcome: act.outcome });
      return true;
    case 'change job':
      service.life.change({ status: act.status });
      return true;
  }
}

function update(world: FollowUpWorld, name: string, ...args: unknown[]): true {
  const { clock, latest: run, updates } = world;
  const asked: AskedUpdate = { name, args, askedAt: clock.now, endedAt: null, end: null };
  updates.push(asked);
  world.waitsFor += 1;
  const updateId = `update-${updates.length}`;
  void run.update({ updateId, name, input: args.map(toPayload) }).then((end) => {
    world.waitsFor -= 1;
    Object.assign(asked, { end, endedAt: clock.now });
    world.say('people', `${name} ${args.join(' ')}: ${end.kind}`);
  });
  return true;
}

import { type Luck, weighted } from './luck';

/** What is drawn for each act beside its kind. `ms` is a span of time, short or long. */
type Details = Readonly<Record<string, (luck: Luck, ms: number) => object>>;

/** The acts of a table. */
export type ActOf<Table extends Details> = {
  readonly [Kind in keyof Table]: Readonly<{ kind: Kind } & ReturnType<Table[Kind]>>;
}[keyof Table];

/** Nothing beside its kind. */
export const plain = () => ({});
export const lasting = (_: Luck, ms: number) => ({ ms });
const back = (_: Luck, backAfterMs: number) => ({ backAfterMs });

/** What happens to machines. The worker is the one that has reached the point. */
export const OF_MACHINES = {
  ...{ kill: back, stop: back, 'server away': lasting },
  freeze: (luck: Luck, ms: number) => ({ ms, suspended: luck.chance('suspended', 0.3) }),
  lose: (luck: Luck) => ({ what: luck.of('lose', ['request', 'answer']) }),
  /** What is around an activity fails once: its input can't be decoded, or its result can't be encoded. */
  break: (luck: Luck) => ({ what: luck.of('break', ['input', 'result']) }),
  'wrong clock': (luck: Luck): { ms: number } => ({
    ms: luck.of('clock', [-3_600_000, -60_000, 60_000, 3_600_000]),
  }),
};
export type MachineAct = ActOf<typeof OF_MACHINES>;

export const OUTCOMES = weighted('2 pull-request, new-pull-request, no-change, failed');

/** What may happen around a follow-up. */
export const ACTS = {
  ...OF_MACHINES,
  /** A limit on a task queue. */
  'hold queue': (luck: Luck, ms: number) => ({
    queue: luck.of('queue', ['sends', 'reads', 'follow-up']),
    ms,
  }),
  ...{ 'poll now': plain, cancel: plain, terminate: plain, 'start again': plain, signal: plain },
  ...{ 'send reset': plain, 'limit attempts': plain, 'poll reset': plain, 'pause send': lasting },
  extend: (luck: Luck) => ({ duration: luck.of('duration', ['10m', '1h', '1s', 'soon']) }),
  decide: (luck: Luck) => ({
    decision: luck.of('decision', ['delivered', 'not-delivered', 'not-delivered']),
    names: luck.of('names', ['latest', 'latest', 'first', 'nothing']),
  }),
  reset: (luck: Luck) => ({ share: luck.next('share') ** 1.5 }),
  'complete by hand': (luck: Luck) => ({
    activity: luck.of('activity', ['sendMessage', 'getJob', 'pollJob']),
    value: luck.of<unknown>('value', [null, 0.5, 'done', {}]),
  }),
  // Others, at the service.
  'turn of others': (luck: Luck) => ({
    ms: luck.between('other turn', 50, 60_000),
    outcome: luck.of('other outcome', OUTCOMES),
  }),
  'change job': (luck: Luck) => ({ status: luck.of('change', ['archived', 'completed', 'failed']) }),
};
export type Act = ActOf<typeof ACTS>;

export function isOfMachines(act: { readonly kind: string }): act is MachineAct {
  return act.kind in OF_MACHINES;
}

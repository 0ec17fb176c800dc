import { type RandomSource, weighted } from './random-source';

/** What is drawn for each operation beside its kind. `ms` is a span of time, short or long. */
type Details = Readonly<Record<string, (random: RandomSource, ms: number) => object>>;

/** The acts of a table. */
export type OperationOf<Table extends Details> = {
  readonly [Kind in keyof Table]: Readonly<{ kind: Kind } & ReturnType<Table[Kind]>>;
}[keyof Table];

/** Nothing beside its kind. */
export const withoutDetails = () => ({});
export const withDuration = (_: RandomSource, ms: number) => ({ ms });
const withRestart = (_: RandomSource, backAfterMs: number) => ({ backAfterMs });

/** What happens to machines. The worker is the one that has reached the point. */
export const MACHINE_OPERATIONS = {
  ...{ kill: withRestart, stop: withRestart, 'server unavailable': withDuration },
  freeze: (random: RandomSource, ms: number) => ({ ms, suspended: random.chance('suspended', 0.3) }),
  lose: (random: RandomSource) => ({ what: random.pick('lose', ['request', 'answer']) }),
  /** What is around an activity fails once: its input can't be decoded, or its result can't be encoded. */
  break: (random: RandomSource) => ({ what: random.pick('break', ['input', 'result']) }),
  'wrong clock': (random: RandomSource): { ms: number } => ({
    ms: random.pick('clock', [-3_600_000, -60_000, 60_000, 3_600_000]),
  }),
};
export type MachineOperation = OperationOf<typeof MACHINE_OPERATIONS>;

export const TURN_OUTCOMES = weighted('2 pull-request, new-pull-request, no-change, failed');

/** What may happen around a follow-up. */
export const OPERATIONS = {
  ...MACHINE_OPERATIONS,
  /** A limit on a task queue. */
  'hold queue': (random: RandomSource, ms: number) => ({
    queue: random.pick('queue', ['sends', 'reads', 'follow-up']),
    ms,
  }),
  ...{
    'poll now': withoutDetails,
    cancel: withoutDetails,
    terminate: withoutDetails,
    'start again': withoutDetails,
    signal: withoutDetails,
  },
  ...{
    'send reset': withoutDetails,
    'limit attempts': withoutDetails,
    'poll reset': withoutDetails,
    'pause send': withDuration,
  },
  extend: (random: RandomSource) => ({ duration: random.pick('duration', ['10m', '1h', '1s', 'soon']) }),
  decide: (random: RandomSource) => ({
    decision: random.pick('decision', ['delivered', 'not-delivered', 'not-delivered']),
    names: random.pick('names', ['latest', 'latest', 'first', 'nothing']),
  }),
  reset: (random: RandomSource) => ({ share: random.next('share') ** 1.5 }),
  'complete by hand': (random: RandomSource) => ({
    activity: random.pick('activity', ['sendMessage', 'getJob', 'pollJob']),
    value: random.pick<unknown>('value', [null, 0.5, 'done', {}]),
  }),
  // Others, at the service.
  'turn by another client': (random: RandomSource) => ({
    ms: random.between('other turn', 50, 60_000),
    outcome: random.pick('other outcome', TURN_OUTCOMES),
  }),
  'change job': (random: RandomSource) => ({
    status: random.pick('change', ['archived', 'completed', 'failed']),
  }),
};
export type Operation = OperationOf<typeof OPERATIONS>;

export function isMachineOperation(operation: { readonly kind: string }): operation is MachineOperation {
  return operation.kind in MACHINE_OPERATIONS;
}

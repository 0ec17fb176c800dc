import { type RandomSource, weighted } from './random-source';

/** Functions that draw the details of each kind of operation. `ms` is a duration between half a second and ten minutes. */
type Details = Readonly<Record<string, (random: RandomSource, ms: number) => object>>;

/** The operations of a table: each kind with its details. */
export type OperationOf<Table extends Details> = {
  readonly [Kind in keyof Table]: Readonly<{ kind: Kind } & ReturnType<Table[Kind]>>;
}[keyof Table];

export const withoutDetails = () => ({});
export const withDuration = (_: RandomSource, ms: number) => ({ ms });
const withRestart = (_: RandomSource, backAfterMs: number) => ({ backAfterMs });

/** Operations on machines and processes. The worker that reached the point is affected. */
export const MACHINE_OPERATIONS = {
  ...{ kill: withRestart, stop: withRestart, 'server unavailable': withDuration },
  freeze: (random: RandomSource, ms: number) => ({ ms, suspended: random.chance('suspended', 0.3) }),
  lose: (random: RandomSource) => ({ what: random.pick('lose', ['request', 'response']) }),
  /** The data converter fails once: the input of an activity can't be decoded, or its result can't be encoded. */
  break: (random: RandomSource) => ({ what: random.pick('break', ['input', 'result']) }),
  'wrong clock': (random: RandomSource): { ms: number } => ({
    ms: random.pick('clock', [-3_600_000, -60_000, 60_000, 3_600_000]),
  }),
};
export type MachineOperation = OperationOf<typeof MACHINE_OPERATIONS>;

export const TURN_OUTCOMES = weighted('2 pull-request, new-pull-request, no-change, failed');

/** All operations of worlds with one follow-up. */
export const OPERATIONS = {
  ...MACHINE_OPERATIONS,
  /** A rate limit holds the tasks of a task queue. */
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
  // Other clients of the agent service perform these operations.
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

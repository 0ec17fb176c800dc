import type { AgentJob } from '../src/core/job';
import { choice, integer, type ParameterValues } from './fault-parameters';
import { type AlterContext, type FaultRow, OPERATIONS } from './fault-row';
import { errorAnswer } from './reaction';

/** What a service may send where a short text is expected. JSON carries each of them, the lone surrogate as `\ud800`. */
const VALUES = {
  surrogate: 'a\ud800b',
  controls: 'a\u0000\u001b[2J\r\n\u0085\u009b31mb',
  directions: '\u202egnp\u2066\u200f\ufeffb',
  // Cutting it at an odd place splits a surrogate pair.
  huge: `x${'🦄'.repeat(20_000)}`,
  prototype: '__proto__',
  number: 42,
  object: { toString: 1 },
} as const;

type Kind = keyof typeof VALUES;
const KINDS = Object.keys(VALUES) as readonly Kind[];

/** Headers carry one byte for each character, so that of these texts only the C1 controls fit in. */
const HEADERS = { location: 'http://\u009b31m.test/\u0085?\u00e9', 'retry-after': '\u009b31m1' };

const ALTERATIONS: Readonly<Record<string, (job: AgentJob, value: unknown) => object>> = {
  id: (job, value) => ({ ...job, id: value }),
  status: (job, value) => ({ ...job, status: value }),
  prLink: (job, value) => ({
    ...job,
    prLink: typeof value === 'string' ? `https://code.test/${value}` : value,
  }),
  model: (job, value) => ({ ...job, model: value }),
  createdAt: (job, value) => ({ ...job, createdAt: value }),
  archivedAt: (job, value) => ({ ...job, archivedAt: value }),
  repository: (job, value) => ({ ...job, source: { ...job.source, repository: value } }),
  ref: (job, value) => ({ ...job, source: { ...job.source, ref: value } }),
  source: (job, value) => ({ ...job, source: value }),
};
const FIELDS = Object.keys(ALTERATIONS);

const text = choice('what is sent in place of the text', ['each', ...KINDS], 'each');

/** One field after the other, each with one value after the other, unless the parameters choose. */
function strangeJob(job: AgentJob, values: ParameterValues, { struck }: AlterContext): AgentJob {
  const [kind, field] = [values.text('text'), values.text('field')];
  const chosenField = field === 'each' ? nth(FIELDS, struck) : field;
  const turn = field === 'each' ? Math.floor(struck / FIELDS.length) : struck;
  // The type says more than is sent here: another type is what this fault is for.
  return ALTERATIONS[chosenField]?.(job, valueOf(kind, turn)) as AgentJob;
}

function valueOf(kind: string, turn: number): unknown {
  return VALUES[kind === 'each' ? nth(KINDS, turn) : (kind as Kind)];
}

function nth<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T;
}

/** The faults of texts that no careful service sends. */
export const STRANGE_TEXTS = {
  'strange-job': {
    meaning: 'a field of the job holds lone surrogates, control characters, a huge text or no text at all',
    operations: OPERATIONS,
    parameters: { text, field: choice('which field', ['each', ...FIELDS], 'each') },
    effect: { kind: 'alter', alter: strangeJob },
  },
  'strange-error': {
    meaning: 'answers with an error whose words and headers (Location, Retry-After) are strange texts',
    operations: OPERATIONS,
    parameters: {
      text: choice('the words of the error', KINDS, 'surrogate'),
      code: integer('the status code', 300, 599, '503'),
      processed: choice('whether a message is processed before the answer', ['yes', 'no'], 'no'),
    },
    effect: {
      kind: 'instead',
      processed: 'parameter',
      react: (values) =>
        errorAnswer(values.number('code'), valueOf(values.text('text'), 0) as string, HEADERS),
    },
  },
} as const satisfies Readonly<Record<string, FaultRow>>;

import type { AgentJob } from '../src/contract/job';

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
export const STRANGE_TEXTS = Object.keys(VALUES) as [Kind, ...Kind[]];

export const STRANGE_FIELDS = [
  ...(['id', 'status', 'prLink', 'model', 'createdAt', 'archivedAt', 'repository', 'ref', 'source'] as const),
] as const;
type Field = (typeof STRANGE_FIELDS)[number];

/** Headers carry one byte for each character, so that of these texts only the C1 controls fit in. */
export const STRANGE_HEADERS = {
  location: 'http://\u009b31m.test/\u0085?\u00e9',
  'retry-after': '\u009b31m1',
};

/** The words of an error; the type says more than is sent. */
export function strangeErrorText(text: Kind): string {
  return VALUES[text] as string;
}

/** With `each`, one field after the other takes one text after the other, counted by `nth`. */
export function strangeJob(job: AgentJob, text: Kind | 'each', field: Field | 'each', nth: number): AgentJob {
  const chosenField = field === 'each' ? at(STRANGE_FIELDS, nth) : field;
  const textIndex = field === 'each' ? Math.floor(nth / STRANGE_FIELDS.length) : nth;
  const value = VALUES[text === 'each' ? at(STRANGE_TEXTS, textIndex) : text];
  // The type says more than is sent here: another type is what this is for.
  return withField(job, chosenField, value) as AgentJob;
}

function withField(job: AgentJob, field: Field, value: unknown): object {
  if (field === 'repository' || field === 'ref') return { ...job, source: { ...job.source, [field]: value } };
  if (field === 'prLink' && typeof value === 'string')
    return { ...job, prLink: `https://code.test/${value}` };
  return { ...job, [field]: value };
}

function at<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T;
}

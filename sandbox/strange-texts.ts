import type { AgentJob } from '../src/contract/job';

/** Values that a service may send instead of a short text. JSON can encode each of them (the lone surrogate as `\ud800`). */
const VALUES = {
  surrogate: 'a\ud800b',
  controls: 'a\u0000\u001b[2J\r\n\u0085\u009b31mb',
  directions: '\u202egnp\u2066\u200f\ufeffb',
  // A cut at an odd position splits a surrogate pair.
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

/**
 * Strange headers. In a header, Node rejects characters above U+00FF and all C0 control characters except the tab. Therefore, these
 * headers have only C1 control characters and é.
 */
export const STRANGE_HEADERS = {
  location: 'http://\u009b31m.test/\u0085?\u00e9',
  'retry-after': '\u009b31m1',
};

/** Returns the error text. The declared type is wrong for some values on purpose. */
export function strangeErrorText(text: Kind): string {
  return VALUES[text] as string;
}

/** Changes one field of a job to a strange text. With `each`, the number `nth` chooses the field or the text in turn. */
export function strangeJob(job: AgentJob, text: Kind | 'each', field: Field | 'each', nth: number): AgentJob {
  const chosenField = field === 'each' ? at(STRANGE_FIELDS, nth) : field;
  const textIndex = field === 'each' ? Math.floor(nth / STRANGE_FIELDS.length) : nth;
  const value = VALUES[text === 'each' ? at(STRANGE_TEXTS, textIndex) : text];
  // The declared type is wrong on purpose, because a strange value may have another type.
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

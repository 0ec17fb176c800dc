import { parseDuration } from '../src/core/units';

/** One parameter of a fault. `fallback` is written as a person would write it; null means that it may be left out. */
export type Parameter = { readonly meaning: string; readonly fallback: string | null } & (
  | { readonly kind: 'duration' }
  | { readonly kind: 'integer'; readonly minimum: number; readonly maximum: number }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'text' | 'header' }
);

export type ParameterTable = Readonly<Record<string, Parameter>>;

/** The values of a fault's parameters, checked: durations in milliseconds, integers as numbers, the rest as texts. */
export class ParameterValues {
  constructor(private readonly values: ReadonlyMap<string, string | number>) {}

  number(name: string): number {
    const value = this.values.get(name);
    if (typeof value !== 'number') throw new Error(`the fault has no number ${name}`);
    return value;
  }

  /** The number of a parameter that may be left out. */
  optionalNumber(name: string): number | undefined {
    return this.values.has(name) ? this.number(name) : undefined;
  }

  text(name: string): string {
    const value = this.values.get(name);
    if (typeof value !== 'string') throw new Error(`the fault has no text ${name}`);
    return value;
  }
}

/** Characters of a text parameter: more than any status word or header value of a rehearsal needs. */
const MAX_TEXT_CHARACTERS = 200;

/** @returns the checked value, or a problem that reads on from the parameter's name. */
export function readParameter(
  parameter: Parameter,
  given: string | number,
): { value: string | number } | { problem: string } {
  switch (parameter.kind) {
    case 'duration': {
      const parsed = parseDuration(given);
      return 'problem' in parsed ? parsed : { value: parsed.ms };
    }
    case 'integer': {
      const value = typeof given === 'number' ? given : /^-?\d+$/.test(given) ? Number(given) : NaN;
      const { minimum, maximum } = parameter;
      if (Number.isSafeInteger(value) && value >= minimum && value <= maximum) return { value };
      return {
        problem: `must be a whole number from ${minimum} to ${maximum}; it is ${JSON.stringify(given)}`,
      };
    }
    case 'choice':
      if (parameter.choices.includes(String(given))) return { value: String(given) };
      return {
        problem: `must be one of ${parameter.choices.join(', ')}; it is ${JSON.stringify(given)}`,
      };
    case 'text':
      if (isText(String(given), /^\P{Cc}+$/u)) return { value: String(given) };
      return {
        problem: `must be a text of 1 to ${MAX_TEXT_CHARACTERS} characters without control characters`,
      };
    case 'header':
      if (isText(String(given), /^[\x20-\x7e]+$/)) return { value: String(given) };
      return {
        problem: `must be 1 to ${MAX_TEXT_CHARACTERS} printable ASCII characters: it is sent in a header`,
      };
  }
}

function isText(text: string, allowed: RegExp): boolean {
  return text.length <= MAX_TEXT_CHARACTERS && allowed.test(text);
}

/** How a parameter is described in the list of faults: what it means, and what it may be where that is a choice. */
export function describeParameter(parameter: Parameter): string {
  return parameter.kind === 'choice'
    ? `${parameter.meaning}: ${parameter.choices.join(', ')}`
    : parameter.meaning;
}

export function duration(meaning: string, fallback: string | null): Parameter {
  return { meaning, kind: 'duration', fallback };
}

export function integer(meaning: string, minimum: number, maximum: number, fallback: string): Parameter {
  return { meaning, kind: 'integer', minimum, maximum, fallback };
}

export function choice(meaning: string, choices: readonly string[], fallback: string): Parameter {
  return { meaning, kind: 'choice', choices, fallback };
}

export function text(meaning: string, fallback: string): Parameter {
  return { meaning, kind: 'text', fallback };
}

export function header(meaning: string, fallback: string): Parameter {
  return { meaning, kind: 'header', fallback };
}

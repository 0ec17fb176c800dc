import { isRecord, type JsonObject, typeName } from './json';
import type { ChoiceOption, CountOption, DurationOption, NumberOption } from './request-options';
import type { Problem } from './problem';
import { MAX_ID_CHARACTERS, MAX_PROMPT_BYTES, quote, visible } from './text';
import { parseDuration } from './units';

/**
 * Reads the fields of an untrusted object one by one, and collects a problem for each invalid one. After a problem the
 * reader returns the default (or an empty text), so that one pass finds every problem.
 */
export class FieldReader {
  private readonly known = new Set<string>();

  constructor(
    private readonly input: JsonObject,
    private readonly prefix: string,
    private readonly problems: Problem[],
  ) {}

  /** Whether a field is given. Null counts as absent, because many clients write it so. */
  has(name: string): boolean {
    return this.value(name) !== undefined;
  }

  /** 1 to 128 characters that a URL can carry as one path segment. */
  id(name: string): string {
    const value = this.value(name);
    if (value === undefined) return this.report(name, 'is missing', '');
    if (typeof value !== 'string')
      return this.report(
        name,
        `must be a text of 1 to ${MAX_ID_CHARACTERS} characters, not ${typeName(value)}`,
        '',
      );
    if (value === '') return this.report(name, 'must not be empty', '');
    const length = Array.from(value).length;
    if (length > MAX_ID_CHARACTERS)
      return this.report(name, `must have at most ${MAX_ID_CHARACTERS} characters; it has ${length}`, '');
    if (value === '.' || value === '..')
      return this.report(
        name,
        `must not be ${JSON.stringify(value)}: no URL can carry it as a path segment`,
        '',
      );
    if (!value.isWellFormed())
      return this.report(name, 'must not hold a lone surrogate: it has no UTF-8 form', '');
    if (/\p{Cc}/u.test(value)) return this.report(name, 'must not hold control characters', '');
    return value;
  }

  /** 1 character to 256 KiB of UTF-8. */
  prompt(name: string): string {
    const value = this.value(name);
    if (value === undefined) return this.report(name, 'is missing', '');
    if (typeof value !== 'string') return this.report(name, `must be a text, not ${typeName(value)}`, '');
    if (value === '')
      return this.report(name, 'must not be empty; the service takes 1 character or more', '');
    if (!value.isWellFormed())
      return this.report(name, 'must not hold a lone surrogate: it could not be sent unaltered', '');
    const bytes = utf8Length(value);
    if (bytes > MAX_PROMPT_BYTES)
      return this.report(name, `must be at most ${MAX_PROMPT_BYTES} bytes of UTF-8; it is ${bytes}`, '');
    return value;
  }

  choice<Choice extends string>(
    name: string,
    { choices, default: fallback }: Pick<ChoiceOption<Choice>, 'choices' | 'default'>,
  ): Choice {
    const value = this.value(name) ?? fallback;
    const chosen = choices.find((choice) => choice === value);
    return (
      chosen ?? this.report(name, `must be one of ${choices.join(', ')}; it is ${show(value)}`, fallback)
    );
  }

  /** Milliseconds of a duration text. */
  duration(
    name: string,
    { default: fallback, minimumMs = 0 }: Pick<DurationOption, 'default' | 'minimumMs'>,
  ): number {
    const parsed = parseDuration(this.value(name) ?? fallback);
    if ('problem' in parsed) return this.report(name, parsed.problem, 0);
    if (parsed.ms < minimumMs) return this.report(name, `must be at least ${minimumMs}ms`, 0);
    return parsed.ms;
  }

  number(name: string, option: Pick<NumberOption, 'default' | 'minimum' | 'maximum'>): number {
    const { default: fallback, minimum, maximum } = option;
    const value = this.value(name) ?? fallback;
    if (typeof value === 'number' && value >= minimum && value <= maximum) return value;
    return this.report(
      name,
      `must be a number from ${minimum} to ${maximum}; it is ${show(value)}`,
      fallback,
    );
  }

  /** A whole number from 0 to the maximum, or `all`. */
  count(
    name: string,
    { default: fallback, maximum }: Pick<CountOption, 'default' | 'maximum'>,
  ): number | 'all' {
    const value = this.value(name) ?? fallback;
    if (value === 'all') return value;
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maximum) return value;
    return this.report(
      name,
      `must be a whole number from 0 to ${maximum}, or all; it is ${show(value)}`,
      fallback,
    );
  }

  /** A reader of the object in a field, or of an empty object if the field is absent or invalid. */
  object(name: string): FieldReader {
    const value = this.value(name) ?? {};
    const problem = isRecord(value) ? undefined : `must be an object, not ${typeName(value)}`;
    if (problem !== undefined) this.report(name, problem, undefined);
    return new FieldReader(isRecord(value) ? value : {}, `${this.prefix}${name}.`, this.problems);
  }

  /** Reports every field that was not read. */
  refuseOthers(): void {
    for (const name of Object.keys(this.input)) {
      if (this.known.has(name) || this.input[name] === undefined) continue;
      this.report(
        quote(name),
        `is not a field here; the fields are ${[...this.known].join(', ')}`,
        undefined,
      );
    }
  }

  private value(name: string): unknown {
    this.known.add(name);
    return this.input[name] ?? undefined;
  }

  private report<T>(name: string, text: string, instead: T): T {
    this.problems.push({ field: visible(`${this.prefix}${name}`), text: visible(text) });
    return instead;
  }
}

function show(value: unknown): string {
  return typeof value === 'object' ? typeName(value) : quote(value);
}

function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

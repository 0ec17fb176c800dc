import { seededRandom } from '../../sandbox/random';

/** Durations in milliseconds: most delays are at most `usual`; a share of `slowShare` is at most `slow`. */
interface Delay {
  readonly usual: number;
  readonly slow: number;
  readonly slowShare: number;
  /** @default 0 */
  readonly least?: number;
}

/**
 * Random values by name: each name has a separate sequence that depends only on the seed. If an operation is removed from a simulation,
 * the values with other names therefore stay the same.
 */
export class RandomSource {
  private readonly sources = new Map<string, () => number>();

  constructor(private readonly seed: number) {}

  /** Returns a number from 0 up to, but not including, 1. */
  next(name: string): number {
    let source = this.sources.get(name);
    if (source === undefined) this.sources.set(name, (source = seededRandom(hash(`${this.seed}:${name}`))));
    return source();
  }

  chance(name: string, share: number): boolean {
    return this.next(name) < share;
  }

  /** Returns an integer from `least` to `most`. With a `bias` above 1, small numbers are more likely. */
  between(name: string, least: number, most: number, bias = 1): number {
    return least + Math.floor((most - least + 1) * this.next(name) ** bias);
  }

  /** Returns a delay in milliseconds. */
  delayMs(name: string, verb: string, { usual, slow, slowShare, least = 0 }: Delay): number {
    return this.between(`${name} ${verb}`, least, this.chance(`${name} is slow`, slowShare) ? slow : usual);
  }

  pick<const T>(name: string, choices: readonly T[]): T {
    return choices[Math.floor(this.next(name) * choices.length)] as T;
  }
}

type WordOf<List extends string> = List extends `${infer First}, ${infer Rest}`
  ? WordOf<First> | WordOf<Rest>
  : List extends `${number} ${infer Word}`
    ? Word
    : List;

/** Choices for {@link RandomSource.pick}: in `3 kill, freeze`, `kill` is three times as likely as `freeze`. */
export function weighted<const List extends string>(...lists: readonly List[]): readonly WordOf<List>[] {
  return lists
    .join(', ')
    .split(', ')
    .flatMap((each) => {
      const [, count = 1, word] = /^(?:(\d+) )?(.+)$/.exec(each) ?? [];
      return Array<WordOf<List>>(Number(count)).fill(word as WordOf<List>);
    });
}

/** The FNV-1a hash of a text. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

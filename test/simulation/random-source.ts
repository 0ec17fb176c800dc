import { seededRandom } from '../../sandbox/random';

interface Delay {
  readonly usual: number;
  readonly slow: number;
  readonly slowShare: number;
  /** @default 0 */
  readonly least?: number;
}

/**
 * Chance by name: each name has a sequence of its own. What is drawn for one thing does not depend on what else happens, so
 * that a simulation from which something was taken away stays the same in all other things.
 */
export class RandomSource {
  private readonly sources = new Map<string, () => number>();

  constructor(private readonly seed: number) {}

  /** From 0 up to, but not including, 1. */
  next(name: string): number {
    let source = this.sources.get(name);
    if (source === undefined) this.sources.set(name, (source = seededRandom(hash(`${this.seed}:${name}`))));
    return source();
  }

  chance(name: string, share: number): boolean {
    return this.next(name) < share;
  }

  /** A whole number from `least` to `most`; small ones are likelier with a `bias` above 1. */
  between(name: string, least: number, most: number, bias = 1): number {
    return least + Math.floor((most - least + 1) * this.next(name) ** bias);
  }

  /** In milliseconds: mostly up to `usual`, and a share of them up to `slow`. */
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

/** Choices for {@link RandomSource.pick}: of `3 kill, freeze` the first one comes three times as often. */
export function weighted<const List extends string>(...lists: readonly List[]): readonly WordOf<List>[] {
  return lists
    .join(', ')
    .split(', ')
    .flatMap((each) => {
      const [, count = 1, word] = /^(?:(\d+) )?(.+)$/.exec(each) ?? [];
      return Array<WordOf<List>>(Number(count)).fill(word as WordOf<List>);
    });
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

import { MAX_BATCH_ITEMS } from '../../contract/batch';
import { truncate } from '../../contract/bounds';

/** Problems that are told one by one: one for each item that can be. Of those beyond, only how many there are. */
const MAX_PROBLEMS = MAX_BATCH_ITEMS;

/** Characters of one problem: what is wrong may hold what was given. */
const MAX_PROBLEM_CHARACTERS = 500;

/** What is wrong with a batch, by place (a line or an item), in bounded space. */
export class ProblemList {
  private readonly kept: { readonly place: number; readonly text: string }[] = [];
  private count = 0;

  /** @param unit what a place is called: `line`, `item` */
  constructor(readonly unit: string) {}

  get isEmpty(): boolean {
    return this.count === 0;
  }

  add(place: number, problem: string): void {
    this.keep(place, `${this.unit} ${place}: ${problem}`);
  }

  /** A problem of the whole. */
  addGeneral(problem: string): void {
    this.keep(Infinity, problem);
  }

  /** Each problem in words, in the order of their places, and how many more there are. */
  inWords(): string[] {
    const words = this.kept.toSorted((one, other) => byPlace(one.place, other.place)).map(({ text }) => text);
    return this.count > words.length ? [...words, `… and ${this.count - words.length} more`] : words;
  }

  private keep(place: number, text: string): void {
    this.count += 1;
    if (this.kept.length < MAX_PROBLEMS)
      this.kept.push({ place, text: truncate(text, MAX_PROBLEM_CHARACTERS) });
  }
}

function byPlace(one: number, other: number): number {
  return one === other ? 0 : one - other;
}

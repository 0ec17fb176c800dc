import { InvalidArgumentError } from 'commander';

/** An argument of a bench. @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number above 0.');
}

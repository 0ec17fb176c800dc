import { MAX_ATTRIBUTE_CHARACTERS } from '../../contract/bounds';
import { grpcError } from '../grpc-status';
import { InvalidScheduleError } from './errors';
import { overlapProblem } from './overlap';
import { scheduleIdProblem } from './schedule-id';

/** @throws InvalidScheduleError unless there are none */
export function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new InvalidScheduleError(problems);
}

export function idProblems(scheduleId: string): string[] {
  const problem = scheduleIdProblem(scheduleId);
  return problem === undefined ? [] : [`scheduleId: ${problem}`];
}

export function noteProblems(note: string | undefined): string[] {
  const length = note?.length ?? 0;
  return length <= MAX_ATTRIBUTE_CHARACTERS
    ? []
    : [`note: must have at most ${MAX_ATTRIBUTE_CHARACTERS} characters; it has ${length}`];
}

export function overlapProblems(overlap: string | undefined): string[] {
  const problem = overlap === undefined ? undefined : overlapProblem(overlap);
  return problem === undefined ? [] : [`overlap: ${problem}`];
}

/**
 * What the server refuses that was not seen here (a time zone that it does not know) as a problem of the schedule; any
 * other error as it is. Of "Invalid schedule spec: …" the SDK makes a TypeError.
 */
export function inScheduleWords(error: unknown): unknown {
  const refused = grpcError(error);
  const invalid = refused?.status === 'INVALID_ARGUMENT' ? refused.words : undefined;
  const words = error instanceof TypeError ? error.message : invalid;
  return words === undefined ? error : new InvalidScheduleError([`the server refuses it: ${words}`]);
}

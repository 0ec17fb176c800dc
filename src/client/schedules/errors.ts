/** Thrown before anything is changed, when a schedule is not one; `problems` are all that were found. */
export class InvalidScheduleError extends Error {
  override readonly name = 'InvalidScheduleError';

  /** @param problems each begins with the name of its field, says what is wrong, and what is right */
  constructor(readonly problems: readonly string[]) {
    super(`Invalid schedule: ${problems.join('; ')}. Nothing was changed.`);
  }
}

/** Thrown when a schedule of the same id exists and is another one. Nothing was changed. */
export class ScheduleExistsError extends Error {
  override readonly name = 'ScheduleExistsError';

  /** @param differences each names what differs, how it is, and how it was asked for */
  constructor(
    readonly scheduleId: string,
    readonly differences: readonly string[],
  ) {
    super(
      `The schedule ${JSON.stringify(scheduleId)} exists and differs: ${differences.join('; ')}. ` +
        'Nothing was changed. Update it, or give another id.',
    );
  }
}

/** Thrown when an id names no schedule of the namespace, or one that starts no batches of follow-ups. */
export class ScheduleNotFoundError extends Error {
  override readonly name = 'ScheduleNotFoundError';

  /** @param foundType the type of the workflow that it starts, where there is a schedule of this id */
  constructor(
    readonly scheduleId: string,
    namespace: string,
    foundType?: string,
  ) {
    super(
      foundType === undefined
        ? `There is no schedule ${JSON.stringify(scheduleId)} in the namespace ${namespace}. It may be misspelt, ` +
            'deleted, or in another namespace.'
        : `The schedule ${JSON.stringify(scheduleId)} is none of follow-ups: it starts ${JSON.stringify(foundType)}.`,
    );
  }
}

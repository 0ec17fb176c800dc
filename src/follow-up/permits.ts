declare const isPermit: unique symbol;

/**
 * Allows one Temporal run to make POSTs until one of them may have been processed. Only the three exported functions of this file
 * make a permit, so that every POST has a reason.
 */
export interface SendPermit {
  readonly kind: 'first' | 'resend' | 'operator';
  /**
   * The only run that may make the POST. A run that a reset made has another ID and must not use this permit, because the run
   * before may have sent.
   */
  readonly runId: string;
  readonly [isPermit]: true;
}

/** Grants the permit with which every follow-up starts. The first permit is valid while the message is unsent. */
export function grantFirstPermit({ firstRunId }: { readonly firstRunId: string }): SendPermit {
  return createPermit('first', firstRunId);
}

/** Grants the permit for the one further POST of `onUnknownDelivery: resend`; null if this permit was granted before. */
export function grantResendPermit({
  firstRunId,
  isResendUsed,
}: {
  readonly firstRunId: string;
  readonly isResendUsed: boolean;
}): SendPermit | null {
  return isResendUsed ? null : createPermit('resend', firstRunId);
}

/** Grants the permit of an operator who decided `not-delivered`. @param runId the run that the operator named */
export function grantOperatorPermit(runId: string): SendPermit {
  return createPermit('operator', runId);
}

function createPermit(kind: SendPermit['kind'], runId: string): SendPermit {
  return { kind, runId } as SendPermit;
}

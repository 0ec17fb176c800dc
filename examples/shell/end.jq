# Prints how a follow-up ended, from the last event of its history; exits with 1 where it failed, or carries another prompt
# than the one whose SHA-256 is $digest.
def refuse_conflict:
  if .promptDigest == null or .promptDigest == $digest then empty
  else "conflict: the follow-up of this request id carries another prompt; nothing was sent for this one\n" | halt_error(1) end;
if .workflowExecutionCompletedEventAttributes then
  .workflowExecutionCompletedEventAttributes.result[0]
  | (.receipt | refuse_conflict), "\(.status) \(.prLink)"
elif .workflowExecutionFailedEventAttributes then
  .workflowExecutionFailedEventAttributes.failure
  | (.applicationFailureInfo.details[0].receipt // {} | refuse_conflict),
    ("\(.applicationFailureInfo.type), delivery \(.applicationFailureInfo.details[0].receipt.delivery.verdict): \(.message)\n"
    | halt_error(1))
else
  "\(.eventType)\n" | halt_error(1)
end

# Prints the outcome of a follow-up from the last event of its history. Exits with 1 if the follow-up failed, or if its prompt does
# not have the SHA-256 $digest.
def exit_on_conflict:
  if .promptDigest == null or .promptDigest == $digest then empty
  else "conflict: the follow-up with this request ID has another prompt; this prompt was not sent\n" | halt_error(1) end;
if .workflowExecutionCompletedEventAttributes then
  .workflowExecutionCompletedEventAttributes.result[0]
  | (.receipt | exit_on_conflict), "\(.status) \(.prLink)"
elif .workflowExecutionFailedEventAttributes then
  .workflowExecutionFailedEventAttributes.failure
  | (.applicationFailureInfo.details[0].receipt // {} | exit_on_conflict),
    ("\(.applicationFailureInfo.type), delivery \(.applicationFailureInfo.details[0].receipt.delivery.verdict): \(.message)\n"
    | halt_error(1))
else
  "\(.eventType)\n" | halt_error(1)
end

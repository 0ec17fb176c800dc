# Prints how a follow-up ended, from the last event of its history; exits with 1 where it failed.
if .workflowExecutionCompletedEventAttributes then
  .workflowExecutionCompletedEventAttributes.result[0] | "\(.status) \(.prLink)"
elif .workflowExecutionFailedEventAttributes then
  .workflowExecutionFailedEventAttributes.failure
  | "\(.applicationFailureInfo.type), delivery \(.applicationFailureInfo.details[0].followUp.delivery.verdict): \(.message)\n"
  | halt_error(1)
else
  "\(.eventType)\n" | halt_error(1)
end

"""Sends one follow-up and prints its pull request: python follow_up.py PROJECT JOB REQUEST_ID PROMPT"""

import asyncio
import hashlib
import os
import sys
from urllib.parse import quote

from temporalio.client import Client, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

CONFLICT = "conflict: the follow-up of this request id carries another prompt; nothing was sent for this one"


def workflow_id(project_id: str, job_id: str, request_id: str) -> str:
    return ":".join(["follow-up", *(quote(part, safe="") for part in (project_id, job_id, request_id))])


async def follow_up(client: Client, workflow_id: str, request: dict) -> dict:
    try:
        handle = await client.start_workflow(
            "followUp",
            request,
            id=workflow_id,
            task_queue="follow-up",
            # While it runs, attach to it. After its end, don't send again.
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
    except WorkflowAlreadyStartedError:  # It has ended, and its result is still there.
        handle = client.get_workflow_handle(workflow_id)
    return await handle.result()


def is_conflict(receipt: dict, prompt: str) -> bool:
    """Whether the follow-up of this request id carries another prompt: then this one was not sent."""
    return receipt["promptDigest"] not in (None, hashlib.sha256(prompt.encode()).hexdigest())


async def main(project_id: str, job_id: str, request_id: str, prompt: str) -> int:
    client = await Client.connect(**ClientConfig.load_client_connect_config())  # TEMPORAL_*, temporal.toml
    request = {"projectId": project_id, "jobId": job_id, "requestId": request_id, "prompt": prompt}
    # The sandbox of the demo neither lags nor takes messages up late; for your agent service leave `maxStaleness` out.
    request["maxStaleness"] = "2s"
    try:
        job = await follow_up(client, workflow_id(project_id, job_id, request_id), request)
        if is_conflict(job["receipt"], prompt):
            print(CONFLICT, file=sys.stderr, flush=True)
            return 1
        print(job["status"], job["prLink"], flush=True)
        return 0
    except WorkflowFailureError as error:
        failure = error.cause
        if not isinstance(failure, ApplicationError):
            raise
        receipt = failure.details[0]["receipt"]
        end = f"{failure.type}, delivery {receipt['delivery']['verdict']}: {failure.message}"
        print(CONFLICT if is_conflict(receipt, prompt) else end, file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    # A process that ends right after a call may crash while Python shuts down (temporalio/sdk-python#300): end it at once.
    os._exit(asyncio.run(main(*sys.argv[1:])))

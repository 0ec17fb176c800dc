"""Sends one follow-up and prints its pull request: python follow_up.py PROJECT JOB REQUEST_ID PROMPT"""

import asyncio
import hashlib
import os
import re
import sys
from urllib.parse import quote

from temporalio.client import Client, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

CONFLICT = "conflict: the follow-up with this request ID has another prompt; this prompt was not sent"


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def workflow_id(project_id: str, job_id: str, request_id: str) -> str:
    parts = [part.lower() if UUID.fullmatch(part) else part for part in (project_id, job_id, request_id)]
    return ":".join(["follow-up", *(quote(part, safe="") for part in parts)])


async def follow_up(client: Client, workflow_id: str, request: dict) -> dict:
    try:
        handle = await client.start_workflow(
            "followUp",
            request,
            id=workflow_id,
            task_queue="follow-up",
            # The start attaches to a running follow-up. If the follow-up has ended, nothing is sent again.
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
    except WorkflowAlreadyStartedError:  # The follow-up has ended, and its result can be read.
        handle = client.get_workflow_handle(workflow_id)
    return await handle.result()


def is_conflict(receipt: dict, prompt: str) -> bool:
    """Whether the follow-up with this request ID has another prompt. If so, this prompt was not sent."""
    return receipt["promptDigest"] not in (None, hashlib.sha256(prompt.encode()).hexdigest())


async def main(project_id: str, job_id: str, request_id: str, prompt: str) -> int:
    config = {"target_host": "localhost:7233", **ClientConfig.load_client_connect_config()}  # TEMPORAL_*, temporal.toml
    client = await Client.connect(**config)
    request = {"projectId": project_id, "jobId": job_id, "requestId": request_id, "prompt": prompt}
    # The demo's sandbox has no stale responses. For your agent service, remove `maxStaleness`.
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
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    # Exit immediately, because Python may crash during a shutdown right after a call (temporalio/sdk-python#300).
    os._exit(asyncio.run(main(*sys.argv[1:])))

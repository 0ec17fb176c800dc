"""Sends the follow-ups of a JSON Lines file as a batch: python follow_up_batch.py BATCH_ID FILE"""

import asyncio
import json
import os
import sys
from pathlib import Path

from temporalio.client import Client, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import WorkflowAlreadyStartedError


class Conflict(Exception):
    """The batch with this ID has other items."""


async def follow_up_batch(client: Client, batch_id: str, items: list[dict]) -> dict:
    workflow_id = f"follow-up-batch:{batch_id}"
    try:
        handle = await client.start_workflow(
            "followUpBatch",
            {"batchId": batch_id, "items": items},
            id=workflow_id,
            task_queue="follow-up",
            # The start attaches to a running batch. If the batch has ended, nothing is started.
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
    except WorkflowAlreadyStartedError:  # The batch has ended, and its result can be read.
        handle = client.get_workflow_handle(workflow_id)
    # The start may have attached to an earlier batch with this ID, so compare its items.
    started = (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes
    [given] = await client.data_converter.decode(started.input.payloads)
    if given.get("items") != items:
        raise Conflict(f"conflict: the batch {batch_id} has other items; these items were not sent")
    return await handle.result()


async def main(batch_id: str, file: str) -> int:
    config = {"target_host": "localhost:7233", **ClientConfig.load_client_connect_config()}  # TEMPORAL_*, temporal.toml
    client = await Client.connect(**config)
    items = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines() if line.strip()]
    try:
        summary = await follow_up_batch(client, batch_id, items)
    except (Conflict, WorkflowFailureError) as error:
        print(error.__cause__ or error, file=sys.stderr, flush=True)
        return 1
    print(json.dumps(summary, indent=2), flush=True)
    # Each item's outcome is in its memo. The visibility list returns the memos without a worker.
    async for item in client.list_workflows(f"WorkflowType = 'followUp' AND FollowUpBatch = '{batch_id}'"):
        end = (await item.memo()).get("followUpReceipt", {})
        print(item.id, end.get("outcome"), end.get("prLink"), flush=True)
    return 0


if __name__ == "__main__":
    # Exit immediately, because Python may crash during a shutdown right after a call (temporalio/sdk-python#300).
    os._exit(asyncio.run(main(*sys.argv[1:])))

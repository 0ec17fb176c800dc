"""Checks the example against the published tables, by a real worker: python test_tables.py"""

import asyncio
import json
import os
import unittest
from pathlib import Path

from temporalio.client import Client, WorkflowFailureError
from temporalio.envconfig import ClientConfig

import follow_up
import follow_up_batch

DOCS = Path(__file__).parents[2] / "docs"


class Tables(unittest.IsolatedAsyncioTestCase):
    def test_workflow_ids(self) -> None:
        for vector in json.loads((DOCS / "workflow-id-vectors.json").read_text("utf-8"))["vectors"]:
            made = follow_up.workflow_id(vector["projectId"], vector["jobId"], vector["requestId"])
            self.assertEqual(made, vector["workflowId"])

    async def test_requests(self) -> None:
        client = await Client.connect(**ClientConfig.load_client_connect_config())
        rows = json.loads((DOCS / "requests.json").read_text("utf-8"))["requests"]
        await asyncio.gather(*(self.judge(client, f"requests:python:{n}", row) for n, row in enumerate(rows)))

    async def test_batch(self) -> None:
        client = await Client.connect(**ClientConfig.load_client_connect_config())
        items = [{"projectId": "docs", "jobId": "nobody", "prompt": f"Message {n}."} for n in range(2)]
        summary = await follow_up_batch.follow_up_batch(client, "batch:python", items)
        self.assertEqual(summary["byFailure"], {"JobNotFound": 2})
        self.assertEqual(await follow_up_batch.follow_up_batch(client, "batch:python", items), summary)
        with self.assertRaises(follow_up_batch.Conflict):
            await follow_up_batch.follow_up_batch(client, "batch:python", items[:1])

    async def judge(self, client: Client, workflow_id: str, row: dict) -> None:
        with self.assertRaises(WorkflowFailureError) as caught:
            await follow_up.follow_up(client, workflow_id, row["request"])
        failure = caught.exception.cause
        # The requests name a job that isn't there, so that an accepted one sends nothing.
        expected = "JobNotFound" if row["problem"] is None else "InvalidRequest"
        self.assertEqual(failure.type, expected, row["name"])
        self.assertIn(f"{row['problem']}: " if row["problem"] else "", failure.message, row["name"])


if __name__ == "__main__":
    # As in the example: Python's own shutdown may crash.
    os._exit(0 if unittest.main(exit=False).result.wasSuccessful() else 1)

// Loaded with `node --import`. With this module, a worker counts the running workflows every second instead of every minute. A
// count times out after one second.
import openWorkflows from '../../dist/worker/open-workflows.js';

openWorkflows.COUNT_INTERVAL_MS = 1_000;
openWorkflows.COUNT_TIMEOUT_MS = 1_000;

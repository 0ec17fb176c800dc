/**
 * A Temporal plugin that traces follow-ups with OpenTelemetry, from the caller through the workflow and the activity to the HTTP
 * request at the agent service. Set its path on the workers and on the CLI:
 *
 *   FOLLOW_UP_PLUGINS=./tracing/plugin.js OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 node dist/worker.js
 */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { Resource } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry';

const resource = new Resource({ 'service.name': process.env.OTEL_SERVICE_NAME ?? 'agent-follow-up' });
const spanProcessor = new BatchSpanProcessor(new OTLPTraceExporter());
const provider = new NodeTracerProvider({ resource, spanProcessors: [spanProcessor] });
provider.register();

// Every HTTP request of an activity becomes a span and carries the header `traceparent`. Requests outside a trace have no span.
registerInstrumentations({
  tracerProvider: provider,
  instrumentations: [new UndiciInstrumentation({ requireParentforSpans: true })],
});

class TracingPlugin extends OpenTelemetryPlugin {
  /** The worker and the CLI call this method before they exit. */
  async [Symbol.asyncDispose]() {
    await spanProcessor.forceFlush();
  }
}

export default new TracingPlugin({ resource, spanProcessor });

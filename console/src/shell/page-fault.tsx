import { Button } from "@mantine/core";
import type { ErrorComponentProps } from "@tanstack/react-router";

/** A fault of the console itself. A server that was upgraded no longer has the files of the page before: loading it again helps. */
export function PageFault({ error }: ErrorComponentProps) {
  return (
    <section role="alert" style={{ padding: 24 }}>
      <h1>This page failed</h1>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <Button onClick={() => window.location.reload()}>Load it again</Button>
    </section>
  );
}

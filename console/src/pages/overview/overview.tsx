import { PageHead } from "../../parts/page-head.tsx";

/** What needs somebody, what is being worked on, and how the fleet is. */
export function Overview() {
  return <PageHead title="Overview" />;
}

import { Link } from "@tanstack/react-router";

export function LostPage() {
  return (
    <main style={{ padding: 24 }}>
      <h1>There is no such page</h1>
      <p>
        <Link to="/">Go to the overview</Link>
      </p>
    </main>
  );
}

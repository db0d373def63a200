/** The page `status`. */
export default function StatusPage() {
  return <h1>status</h1>;
}

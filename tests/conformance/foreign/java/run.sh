# Java trusts what is in a store of its own format: one is made with the development CA in it.
set -e
# It lies beside that file: two runs side by side have two servers, and so two of them.
trust="$HUBWEIR_CA_FILE.p12"
rm -f "$trust"
keytool -importcert -noprompt -alias hubweir -file "$HUBWEIR_CA_FILE" -keystore "$trust" -storepass hubweir >&2
exec java -Dfile.encoding=UTF-8 -Djavax.net.ssl.trustStore="$trust" -Djavax.net.ssl.trustStorePassword=hubweir \
  -cp 'classes:libraries/*' Main "$@"

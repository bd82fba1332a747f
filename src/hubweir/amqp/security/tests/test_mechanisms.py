from hubweir.amqp.security.mechanisms import OFFERED


def test_the_offer_is_in_the_order_of_the_service() -> None:
    assert OFFERED == ("MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL")
